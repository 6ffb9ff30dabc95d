/** The stages of a plan: as a tree, and what each one does. */
import { StageTree } from '../../components/StageTree';
import { formatRate } from '../../format';
import classes from './Explained.module.css';
import type { Plan } from './plan';

export function Stages({ plan }: { plan: Plan }) {
  return (
    <>
      <StageTree
        stages={plan.stages}
        along={(from) => ('stream' in from && from.stream in plan.ratesPerS ? formatRate(plan.ratesPerS[from.stream]) : null)}
      />
      <dl className={classes.plan}>
        {plan.stages.map(({ stage, operator, conditions, index, groups }) => (
          <div key={stage} className={classes.stage}>
            <dt>Stage {stage}</dt>
            <dd>
              {operator !== '' && <div>{operator}</div>}
              {groups !== null && <div>groups by {groups}, given when the watermark reaches the end of a window</div>}
              {(groups === null || conditions.length > 0) && (
                <div>{conditions.length === 0 ? 'every pair in the window' : `where ${conditions.join(' AND ')}`}</div>
              )}
              {index.length > 0 && <div className={classes.index}>index: {index.join('; ')}</div>}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
