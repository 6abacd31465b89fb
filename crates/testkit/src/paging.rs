use antumbra_service::paging::{Cursor, Page};

/// Maximum pages of a listing.
const PAGES: usize = 10_000;

/// Returns the rows of all pages of a listing, none of which has more than `limit`.
pub async fn all_pages<T>(limit: usize, next: impl AsyncFn(Option<&Cursor>) -> Page<T>) -> Vec<T> {
    let (mut rows, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = next(cursor.as_ref()).await;
        assert!(page.rows.len() <= limit, "{} of {limit}", page.rows.len());
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            return rows;
        }
    }
    panic!("the listing does not end");
}
