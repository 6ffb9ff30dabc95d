/** How the query would run, and the operators side by side. */
import { Code } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { explainQuery } from '../../api/queries';
import { hasKind } from '../../api/stages';
import type { Draft, Explanation } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Loading } from '../../components/Loading';
import { ProblemView } from '../../components/ProblemView';
import { explainDraft } from '../../recipes';
import { CompareLink } from '../compare/CompareLink';
import classes from './Explained.module.css';
import { Operators } from './Operators';
import { planOf, type Plan } from './plan';
import { kindInWords } from '../../components/StageTree';
import { Stages } from './Stages';
import { fieldsOfWay } from './ways';
import { WaysTable } from './WaysTable';

interface ExplainedProps {
  draft: Draft;
  /** It was checked as it is now; until then the plan of before stays. */
  isReady: boolean;
  chosen: string;
  onChoose: (operator: string) => void;
  /** Takes fields that are to hold, such as a tree; those that are empty are not given. */
  onFields: (fields: Record<string, string>) => void;
}

interface FactsProps {
  plan: Plan;
  columns: Explanation['columns'];
  /** There is one join, and no groups. */
  isOne: boolean;
}

function Facts({ plan, columns, isOne }: FactsProps) {
  return (
    <dl className={classes.plan}>
      <dt>Operator</dt>
      <dd>
        <b>{plan.operator}</b>, {plan.reason}
      </dd>
      {plan.order !== '' && (
        <>
          <dt>Order</dt>
          <dd>{plan.order}</dd>
        </>
      )}
      {Object.entries(plan.unknownRates).map(([name, why]) => (
        <Fragment key={name}>
          <dt>Rate of {name}</dt>
          <dd>not known: {why}</dd>
        </Fragment>
      ))}
      {plan.options.length > 0 && (
        <>
          <dt>Window</dt>
          <dd>{plan.window}</dd>
        </>
      )}
      {isOne && plan.stages.some(hasKind) && (
        <>
          <dt>Join</dt>
          <dd>{plan.stages.map(kindInWords)}</dd>
        </>
      )}
      {isOne && (
        <>
          <dt>Index</dt>
          <dd>{plan.main}</dd>
          <dt>Then checked</dt>
          <dd>{plan.residual.length === 0 ? 'nothing: the index settles it' : plan.residual.join(' AND ')}</dd>
        </>
      )}
      <dt>Output</dt>
      <dd>{columns.map((column) => `${column.name} ${column.type}`).join(', ')}</dd>
    </dl>
  );
}

export function Explained({ draft, isReady, chosen, onChoose, onFields }: ExplainedProps) {
  const explained = useQuery({ ...explainQuery(draft), enabled: isReady, placeholderData: (before) => before });
  if (explained.error !== null) return <ProblemView error={explained.error} />;
  if (explained.data === undefined) return <Loading what="the plan" lines={5} />;
  const plan = planOf(explained.data);
  const isOne = plan.stages.length < 2 && plan.stages.every(({ groups }) => groups === null);
  return (
    <div aria-busy={explained.isFetching}>
      <Facts plan={plan} columns={explained.data.columns} isOne={isOne} />
      {!isOne && <Stages plan={plan} />}
      {plan.ways !== null && (
        <WaysTable
          ways={plan.ways}
          onTake={(way) => {
            onFields(fieldsOfWay(way, plan.operator));
          }}
        />
      )}
      {plan.options.length > 0 && (
        <Operators options={plan.options} runs={plan.operator} chosen={chosen} hasWays={plan.ways !== null} onChoose={onChoose} />
      )}
      <div className={classes.copy}>
        <CompareLink of={{ query: draft.query }} />
        <CopyAs recipe={explainDraft(draft)} what="explain this query" />
      </div>
      <details className={classes.text}>
        <summary>The whole explanation</summary>
        <Code block className={classes.code}>
          {explained.data.text}
        </Code>
      </details>
    </div>
  );
}
