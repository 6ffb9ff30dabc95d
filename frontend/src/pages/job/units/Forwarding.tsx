/** What units of a chain or a ring hand on to one another, and how evenly they store what they keep. */
import type { Report } from '../../../api/figures';
import { formatBytes, formatRate, formatRatio } from '../../../format';
import classes from './UnitFigures.module.css';

export function Forwarding({ report }: { report: Report }) {
  const { forwarded, imbalance, seconds } = report;
  if (forwarded === null) return null;
  const perSecond = (name: string) => (seconds > 0 ? (forwarded[name] ?? 0) / seconds : null);
  const bytes = perSecond('bytes');
  return (
    <section className={classes.unit} aria-label="From unit to unit">
      <h3 className={classes.name}>From unit to unit</h3>
      <dl className={classes.figures}>
        <div>
          <dt>Tuples</dt>
          <dd>{formatRate(perSecond('tuples'))}</dd>
        </div>
        <div>
          <dt>Blocks</dt>
          <dd>{formatRate(perSecond('blocks'))}</dd>
        </div>
        <div>
          <dt>Bytes</dt>
          <dd>{bytes === null ? formatBytes(bytes) : `${formatBytes(bytes)}/s`}</dd>
        </div>
        {Object.entries(imbalance).map(([stream, above]) => (
          <div key={stream} title="By what share of the mean the unit with the most stored rows is above it">
            <dt>IF of {stream}</dt>
            <dd>{formatRatio(above)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
