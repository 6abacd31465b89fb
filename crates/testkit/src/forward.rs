//! Wrappers of stores.

/// Methods of [`ShadowStore`](antumbra_service::shadows::ShadowStore) that a wrapper passes on to the store in one of its
/// fields, inside of its `impl` block: `forward_shadow_store!(inner: layout, delete, list);`.
#[macro_export]
macro_rules! forward_shadow_store {
    ($inner:ident: $($method:ident),+) => {
        $($crate::forward_shadow_store!(@$method $inner);)+
    };
    (@layout $inner:ident) => {
        fn layout(&self) -> ::antumbra_service::shadows::Layout {
            self.$inner.layout()
        }
    };
    (@read $inner:ident) => {
        async fn read(
            &self,
            read: &::antumbra_service::shadows::Read,
            consistency: ::antumbra_service::shadows::ReadConsistency,
        ) -> Result<
            ::antumbra_service::shadows::Snapshot,
            ::antumbra_service::shadows::StoreError,
        > {
            self.$inner.read(read, consistency).await
        }
    };
    (@delete $inner:ident) => {
        async fn delete(
            &self,
            delete: &::antumbra_service::shadows::Delete,
            now: ::antumbra_shadow::Timestamp,
        ) -> Result<(), ::antumbra_service::shadows::StoreError> {
            self.$inner.delete(delete, now).await
        }
    };
    (@list $inner:ident) => {
        async fn list(
            &self,
            id: &str,
            limit: usize,
            cursor: Option<&::antumbra_service::shadows::Cursor>,
        ) -> Result<
            ::antumbra_service::shadows::Page<::antumbra_service::shadows::DocumentSummary>,
            ::antumbra_service::shadows::StoreError,
        > {
            self.$inner.list(id, limit, cursor).await
        }
    };
    (@list_by_prefix $inner:ident) => {
        async fn list_by_prefix(
            &self,
            prefix: &str,
            within: &::antumbra_service::access::IdRanges,
            limit: usize,
            cursor: Option<&::antumbra_service::shadows::Cursor>,
        ) -> Result<
            ::antumbra_service::shadows::Page<::antumbra_service::shadows::ShadowId>,
            ::antumbra_service::shadows::StoreError,
        > {
            self.$inner
                .list_by_prefix(prefix, within, limit, cursor)
                .await
        }
    };
}
