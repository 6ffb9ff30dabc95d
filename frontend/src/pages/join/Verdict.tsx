/** Whether the query is right, and if not, why: for who cannot see what is underlined, too. */
import type { Diagnostics } from '../../api/types';
import classes from './Verdict.module.css';

interface VerdictProps {
  diagnostics: Diagnostics | undefined;
  isChecking: boolean;
  /** No answer came to the last check. */
  hasFailed?: boolean;
}

export function Verdict({ diagnostics, isChecking, hasFailed = false }: VerdictProps) {
  return (
    <div className={classes.verdict} role="status" aria-busy={isChecking} data-valid={diagnostics?.valid}>
      {diagnostics === undefined && (hasFailed && !isChecking ? 'could not be checked' : 'is being checked')}
      {diagnostics?.valid === true && diagnostics.summary}
      {diagnostics?.diagnostics.map(({ detail, span }, place) => (
        <p key={place} className={classes.mistake}>
          {span && `Line ${String(span.line)}, column ${String(span.column)}: `}
          {detail}
        </p>
      ))}
    </div>
  );
}
