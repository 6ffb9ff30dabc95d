/** A plan as trees, one for each stage that gives results: streams flow into stages, and stages into each other. */
import type { ReactNode } from 'react';
import { givingResults, hasKind, isAsOf, type PlanStage, type StageInput } from '../api/stages';
import classes from './StageTree.module.css';

interface StageTreeProps<Stage extends PlanStage> {
  /** In the order in which rows reach them. */
  stages: Stage[];
  /** What is written at the edge that leaves a stream or a stage, such as "12/s"; null where nothing is known. */
  along: (from: StageInput) => string | null;
  /** What a stage is, below its name. */
  about?: (stage: Stage) => ReactNode;
}

function nameOf(input: StageInput): string {
  if ('stream' in input) return input.stream;
  return 'relation' in input ? input.relation : `stage ${String(input.stage)}`;
}

/** Such as LEFT JOIN. */
const kindOf = ({ kind }: PlanStage): string => `${kind ?? ''} JOIN`;

/** What a stage does: one that reads one input makes groups of it, or is a further round of a join of all streams. */
const doneBy = (stage: PlanStage): string => {
  const [first, ...others] = stage.inputs.map(nameOf);
  if (hasKind(stage)) return `is ${[first, ...others].join(` ${kindOf(stage)} `)}`;
  if (others.length > 0) return `joins ${[first, ...others].join(' with ')}`;
  return stage.kind === null ? `makes groups of ${first ?? 'nothing'}` : `joins ${first ?? 'nothing'} further`;
};

/** What a join that has a kind gives, and when. */
export function kindInWords(stage: PlanStage): string {
  const [first, second] = stage.inputs.map(nameOf);
  return `${first ?? ''} ${kindOf(stage)} ${second ?? ''}: ${whenGiven(stage, first ?? '', second ?? '')}`;
}

function whenGiven(stage: PlanStage, first: string, second: string): string {
  if (isAsOf(stage))
    return `a row of ${first} comes out with the latest row of ${second}, once the watermark of ${second} has passed it`;
  if (stage.kind === 'LEFT SEMI') return `a row of ${first} comes out once, when one of ${second} matches it`;
  return 'an unmatched row comes out once nothing can match it any more';
}

/** What leaves a stage that gives results. */
const resultsOf = ({ queries }: PlanStage): string => (queries.length > 0 ? `results of ${queries.join(' and ')}` : 'results');

/** The tree in words, such as "Stage 1 joins a with b; stage 2 joins stage 1 with c and gives the results." */
export function stagesInWords(stages: PlanStage[]): string {
  const giving = new Set(givingResults(stages));
  const words = stages.map(
    (stage) => `stage ${String(stage.stage)} ${doneBy(stage)}${giving.has(stage) ? ` and gives the ${resultsOf(stage)}` : ''}`,
  );
  const text = `${words.join('; ')}.`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function StageTree<Stage extends PlanStage>({ stages, along, about }: StageTreeProps<Stage>) {
  if (stages.length === 0) return null;
  // One that several others read is drawn where it is read first, and named elsewhere.
  const drawn = new Set<number>();
  const draw = (input: StageInput): ReactNode => {
    const stage =
      'stage' in input && !drawn.has(input.stage) ? stages.find((one) => one.stage === input.stage) : undefined;
    if (stage !== undefined) drawn.add(stage.stage);
    return (
      <>
        {stage === undefined ? <span className={classes.stream}>{nameOf(input)}</span> : drawStage(stage)}
        <span className={classes.edge}>{along(input)}</span>
      </>
    );
  };
  const drawStage = (stage: Stage): ReactNode => (
    <div className={classes.join}>
      <ul className={classes.inputs} data-several={stage.inputs.length > 1}>
        {stage.inputs.map((input, side) => (
          // A stream may be joined with itself.
          <li key={`${String(side)} ${nameOf(input)}`}>{draw(input)}</li>
        ))}
      </ul>
      <div className={classes.stage}>
        <b>Stage {stage.stage}</b>
        {hasKind(stage) && <span> {kindOf(stage)}</span>}
        {about !== undefined && <span className={classes.about}>{about(stage)}</span>}
      </div>
    </div>
  );
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.words}>{stagesInWords(stages)}</figcaption>
      <div className={classes.scrolled} role="region" aria-label="The plan as a tree of stages" tabIndex={0}>
        {givingResults(stages).map((stage) => (
          <div key={stage.stage} className={classes.root}>
            {draw({ stage: stage.stage })}
            <span className={classes.results}>{resultsOf(stage)}</span>
          </div>
        ))}
      </div>
    </figure>
  );
}
