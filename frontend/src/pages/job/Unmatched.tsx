/** What became of the rows that an outer, semi or anti join decides on; nothing for other joins. */
import type { Report } from '../../api/figures';
import { decides } from '../../api/stages';
import { Stat } from '../../components/Stat';
import { formatCount, formatShort } from '../../format';
import classes from './JobStats.module.css';

export function Unmatched({ reports, span }: { reports: Report[]; span: string }) {
  const newest = reports.at(-1);
  if (!newest?.stages.some(decides)) return null;
  const sum = (of: (report: Report) => number): number => reports.reduce((all, report) => all + of(report), 0);
  const tooLate = sum(({ lateAfterFinal }) => lateAfterFinal);
  // A row may be given by one stage, and again by the next.
  const where = newest.stages.filter(decides).length > 1 ? ' in all stages' : '';
  return (
    <Stat
      label="Rows that wait"
      value={formatShort(newest.openRows)}
      note={
        <>
          {formatCount(sum(({ unmatchedRows }) => unmatchedRows))} given as unmatched{where}
          {tooLate > 0 && (
            <>
              , <span className={classes.warning}>{formatCount(tooLate)} too late after they were final</span>
            </>
          )}{' '}
          in the last {span}
        </>
      }
    />
  );
}
