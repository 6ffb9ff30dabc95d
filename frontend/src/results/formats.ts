/** Files that an answer can be saved as. */
export const FORMATS = ['csv', 'ndjson', 'parquet', 'arrow'] as const;

export type FileFormat = (typeof FORMATS)[number];
