/** The stages of a join of three streams and more: as a tree, and what each one does. */
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
        {plan.stages.map(({ stage, operator, conditions, index }) => (
          <div key={stage} className={classes.stage}>
            <dt>Stage {stage}</dt>
            <dd>
              {operator !== '' && <div>{operator}</div>}
              <div>{conditions.length === 0 ? 'every pair in the window' : `where ${conditions.join(' AND ')}`}</div>
              <div className={classes.index}>index: {index.join('; ')}</div>
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
