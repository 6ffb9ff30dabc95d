/** Says of late rows that their files are read in another order than the numbers in their names have. */
import type { Report } from '../../api/figures';
import { Notice } from './Notice';

export function LateFilesNotice({ report }: { report: Report | undefined }) {
  if (report === undefined || report.lateFiles.length === 0) return null;
  return (
    <Notice tone="busy" title="Rows are late, perhaps because of the names of files">
      {report.lateFiles.map((said) => (
        <p key={said}>{said}</p>
      ))}
    </Notice>
  );
}
