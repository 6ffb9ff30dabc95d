package streamjoin.benchmarks;

import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Set;
import org.apache.flink.api.common.io.GenericInputFormat;
import org.apache.flink.api.common.io.NonParallelInput;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.io.GenericInputSplit;
import org.apache.flink.formats.parquet.ParquetColumnarRowInputFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.InputFormatProvider;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.FullCachingLookupProvider;
import org.apache.flink.table.connector.source.lookup.cache.trigger.PeriodicCacheReloadTrigger;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.RowType;

/**
 * A folder of Parquet files as a table for lookup joins, by Flink's own full cache: `'connector' = 'parquet-lookup'`.
 *
 * <p>Flink has that cache, and its filesystem connector cannot be looked up; this class only lets the one read what the
 * other reads. The cache is loaded once, when the job starts, and all tasks of a process share it.
 */
public final class ParquetLookup implements DynamicTableSourceFactory {
    private static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();
    private static final Duration NEVER_AGAIN = Duration.ofDays(365);
    private static final int ROWS_PER_READ = 2048;

    @Override
    public String factoryIdentifier() {
        return "parquet-lookup";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(PATH);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        RowType type = (RowType) context.getPhysicalRowDataType().getLogicalType();
        return new Source(helper.getOptions().get(PATH), type);
    }

    private record Source(String folder, RowType type) implements LookupTableSource {
        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return FullCachingLookupProvider.of(
                    InputFormatProvider.of(new Rows(folder, type)),
                    new PeriodicCacheReloadTrigger(
                            NEVER_AGAIN, PeriodicCacheReloadTrigger.ScheduleMode.FIXED_DELAY));
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "Parquet, looked up";
        }
    }

    /** All rows of the folder's files, in name order, by one reader. */
    private static final class Rows extends GenericInputFormat<RowData> implements NonParallelInput {
        private static final long serialVersionUID = 1;

        private final String folder;
        private final RowType type;
        private transient RowDataSerializer serializer;
        private transient Deque<File> files;
        private transient BulkFormat.Reader<RowData> reader;
        private transient BulkFormat.RecordIterator<RowData> batch;
        private transient RowData next;

        Rows(String folder, RowType type) {
            this.folder = folder;
            this.type = type;
        }

        @Override
        public void open(GenericInputSplit split) throws IOException {
            super.open(split);
            File[] found = new File(folder).listFiles((place, name) -> name.endsWith(".parquet"));
            if (found == null) {
                throw new IOException(folder + " is no folder");
            }
            Arrays.sort(found);
            serializer = new RowDataSerializer(type);
            files = new ArrayDeque<>(Arrays.asList(found));
            advance();
        }

        @Override
        public boolean reachedEnd() {
            return next == null;
        }

        @Override
        public RowData nextRecord(RowData reuse) throws IOException {
            // The reader fills the same vectors again, and the cache keeps what it is given.
            RowData row = serializer.copy(next);
            advance();
            return row;
        }

        @Override
        public void close() throws IOException {
            if (reader != null) {
                reader.close();
                reader = null;
            }
            super.close();
        }

        private void advance() throws IOException {
            while (true) {
                BulkFormat.RecordIterator<RowData> from = batch;
                var found = from == null ? null : from.next();
                if (found != null) {
                    next = found.getRecord();
                    return;
                }
                if (from != null) {
                    from.releaseBatch();
                }
                batch = reader == null ? null : reader.readBatch();
                if (batch == null) {
                    if (reader != null) {
                        reader.close();
                    }
                    if (files.isEmpty()) {
                        reader = null;
                        next = null;
                        return;
                    }
                    reader = opened(files.removeFirst());
                }
            }
        }

        private BulkFormat.Reader<RowData> opened(File file) throws IOException {
            var format =
                    new ParquetColumnarRowInputFormat<FileSourceSplit>(
                            new org.apache.hadoop.conf.Configuration(),
                            type,
                            InternalTypeInfo.of(type),
                            ROWS_PER_READ,
                            true,
                            true);
            long size = file.length();
            var split = new FileSourceSplit(file.getName(), new Path(file.toURI()), 0, size, file.lastModified(), size);
            return format.createReader(new org.apache.flink.configuration.Configuration(), split);
        }
    }
}
