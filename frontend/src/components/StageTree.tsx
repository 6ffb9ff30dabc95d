/** A plan as a tree: streams flow into stages, and stages into each other, with what goes along each edge. */
import type { ReactNode } from 'react';
import { hasKind, isAsOf, type PlanStage, type StageInput } from '../api/stages';
import classes from './StageTree.module.css';

interface StageTreeProps<Stage extends PlanStage> {
  /** In the order in which rows reach them; the last one gives the results. */
  stages: Stage[];
  /** What is written at the edge that leaves a stream or a stage, such as "12/s"; null where nothing is known. */
  along: (from: StageInput) => string | null;
  /** What a stage is, below its name. */
  about?: (stage: Stage) => ReactNode;
}

const nameOf = (input: StageInput): string => ('stream' in input ? input.stream : `stage ${String(input.stage)}`);

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

/** The tree in words, such as "Stage 1 joins a with b; stage 2 joins stage 1 with c and gives the results." */
export function stagesInWords(stages: PlanStage[]): string {
  const words = stages.map((stage) => `stage ${String(stage.stage)} ${doneBy(stage)}`);
  const text = `${words.join('; ')} and gives the results.`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function StageTree<Stage extends PlanStage>({ stages, along, about }: StageTreeProps<Stage>) {
  const last = stages.at(-1);
  if (last === undefined) return null;
  const draw = (input: StageInput): ReactNode => {
    const stage = 'stage' in input ? stages.find((one) => one.stage === input.stage) : undefined;
    return (
      <>
        {stage === undefined ? <span className={classes.stream}>{nameOf(input)}</span> : drawStage(stage)}
        <span className={classes.edge}>{along(input)}</span>
      </>
    );
  };
  const drawStage = (stage: Stage): ReactNode => (
    <div className={classes.join}>
      <ul className={classes.inputs}>
        {stage.inputs.map((input) => (
          <li key={nameOf(input)}>{draw(input)}</li>
        ))}
      </ul>
      <div className={classes.stage}>
        <b>Stage {stage.stage}</b>
        {hasKind(stage) && <span>{kindOf(stage)}</span>}
        {about !== undefined && <span className={classes.about}>{about(stage)}</span>}
      </div>
    </div>
  );
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.words}>{stagesInWords(stages)}</figcaption>
      <div className={classes.scrolled} role="region" aria-label="The plan as a tree of stages" tabIndex={0}>
        <div className={classes.root}>
          {draw({ stage: last.stage })}
          <span className={classes.results}>results</span>
        </div>
      </div>
    </figure>
  );
}
