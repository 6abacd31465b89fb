//! Shadows on a table, their stream, the history writer, and a reader.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::streams::event::invocation;
use antumbra_dynamodb::streams::{Client as StreamsClient, Position, Record, TableStream};
use antumbra_dynamodb::{
    DynamoDbHistory, DynamoDbShadows, Feed, FeedConfig, HISTORY, HistoryConfig, HistoryReader,
    MAIN, ShadowTableConfig,
};
use antumbra_history_writer::{BatchSummary, HistoryWriter};
use antumbra_service::clock::{Clock as _, ManualClock};
use antumbra_service::shadows::{Layout, Shadows};
use antumbra_shadow::{Model, Timestamp};
use antumbra_testkit::dynamodb::TestTable;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};

pub(crate) const DAYS: u32 = 30;
pub(crate) const FEED: FeedConfig = FeedConfig {
    days: 7,
    partitions: 4,
};

pub(crate) struct Rig {
    pub(crate) table: TestTable,
    pub(crate) history_table: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) shadows: Shadows<DynamoDbShadows>,
    pub(crate) writer: HistoryWriter,
    pub(crate) history: DynamoDbHistory,
    partitions: u32,
    pub(crate) reader: HistoryReader,
    pub(crate) feed: Feed,
    /// Sequence number of the last record of the stream that was read.
    last_read: Option<String>,
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-01-31T12:00:00Z").unwrap()
}

impl Rig {
    pub(crate) async fn new(layout: Layout) -> Rig {
        Rig::with_partitions(layout, FEED.partitions).await
    }

    pub(crate) async fn with_partitions(layout: Layout, partitions: u32) -> Rig {
        let table = TestTable::create(MAIN).await;
        let history_table = table.another(HISTORY).await;
        let clock = Arc::new(ManualClock::new(start()));
        let store = || {
            let config = ShadowTableConfig::new(&table.name).layout(layout);
            DynamoDbShadows::new(table.client.clone(), config)
        };
        let history = DynamoDbHistory::new(
            table.client.clone(),
            HistoryConfig {
                table: history_table.clone(),
                days: DAYS,
            },
        );
        let feed = FeedConfig { partitions, ..FEED };
        let reader = history.clone().reader(store(), Model::default());
        let writer =
            HistoryWriter::new(history.clone(), Some(feed), Model::default(), clock.clone());
        Rig {
            feed: reader.clone().feed(clock.clone()),
            reader,
            writer,
            history,
            partitions,
            shadows: Shadows::with_clock(store(), clock.clone()),
            table,
            history_table,
            clock,
            last_read: None,
        }
    }

    pub(crate) fn writer_with(&self, feed: Option<FeedConfig>) -> HistoryWriter {
        let (history, clock) = (self.history.clone(), self.clock.clone());
        HistoryWriter::new(history, feed, Model::default(), clock)
    }

    /// Another instance of the function.
    pub(crate) fn another_writer(&self) -> HistoryWriter {
        let partitions = self.partitions;
        self.writer_with(Some(FeedConfig { partitions, ..FEED }))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The records of the stream since the last call.
    pub(crate) async fn records(&mut self) -> Vec<Record> {
        let config = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-north-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(self.table.endpoint.url())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .build();
        let client = StreamsClient::from_conf(config);
        let stream = TableStream::new(&client, &self.table.stream_arn);
        let mut records = Vec::new();
        for shard in stream.shards().await.unwrap() {
            let position = match &self.last_read {
                Some(number) => Position::After(number.clone()),
                None => Position::TrimHorizon,
            };
            let mut iterator = stream.iterator(&shard.id, position).await.unwrap();
            while let Some(at) = iterator {
                let page = stream.page(&at, None).await.unwrap();
                iterator = page.next.filter(|_| !page.records.is_empty());
                records.extend(page.records);
            }
        }
        if let Some(last) = records.last() {
            let number = antumbra_dynamodb::streams::sequence_number(last);
            self.last_read = Some(number.to_owned());
        }
        records
    }

    /// The items of the history table, without those of the change feed.
    pub(crate) async fn entries(&self) -> Vec<HashMap<String, AttributeValue>> {
        let scan = self.table.client.scan().table_name(&self.history_table);
        let items = scan.send().await.unwrap().items.unwrap_or_default();
        let is_entry =
            |item: &HashMap<_, AttributeValue>| item["PK"].as_s().unwrap().starts_with("DS#");
        items.into_iter().filter(is_entry).collect()
    }

    /// Invokes the writer with these records.
    pub(crate) async fn record(&self, records: &[Record]) -> BatchSummary {
        self.record_with(&self.writer, records).await
    }

    pub(crate) async fn record_with(
        &self,
        writer: &HistoryWriter,
        records: &[Record],
    ) -> BatchSummary {
        let event = invocation(&self.table.stream_arn, records).unwrap();
        let deadline = self.now().after(Duration::from_secs(30));
        writer.record(&event, deadline).await.unwrap()
    }

    /// Records everything that the stream has, in batches of at most 100 records.
    pub(crate) async fn record_all(&mut self) {
        let records = self.records().await;
        for batch in records.chunks(100) {
            let summary = self.record(batch).await;
            assert_eq!((summary.failed, summary.unrecorded), (0, 0), "{summary:?}");
        }
    }
}
