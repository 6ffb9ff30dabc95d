/** One page of an answer, and the way to the others. */
import { Button } from '@mantine/core';
import { Problem } from '../../api/problem';
import type { Answer } from '../../api/types';
import { Empty } from '../../components/Empty';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { formatCount, formatRows } from '../../format';
import classes from './AnswerPages.module.css';
import { firstRowOf, hasNext, type Pages } from './usePages';

const ROWS_PX = 520;

interface AnswerPagesProps {
  pages: Pages;
  isAsking: boolean;
  /** By its place, from 0. */
  onTurn: (at: number) => void;
}

export function AnswerPages({ pages, isAsking, onTurn }: AnswerPagesProps) {
  const { answers, at } = pages;
  const answer = answers[at];
  if (answer === undefined) return null;
  return (
    <>
      {answer.error && <ProblemView error={new Problem(answer.error)} />}
      <div className={classes.page}>
        <p className={classes.words} role="status">
          {wordsOf(answer, firstRowOf(pages), hasNext(pages))}
        </p>
        {(at > 0 || hasNext(pages)) && (
          <div className={classes.buttons} role="group" aria-label="Pages of the answer">
            <Button variant="default" disabled={at === 0} onClick={() => onTurn(at - 1)}>
              Previous page
            </Button>
            <Button variant="default" disabled={!hasNext(pages)} loading={isAsking} onClick={() => onTurn(at + 1)}>
              Next page
            </Button>
          </div>
        )}
      </div>
      {answer.rows.length === 0 ? (
        <Empty title={at === 0 ? 'No result is like that' : 'There are no more rows'} />
      ) : (
        <Rows key={at} label="Answer" columns={answer.schema} rows={answer.rows} height={ROWS_PX} />
      )}
    </>
  );
}

function wordsOf(answer: Answer, first: number, more: boolean): string {
  const last = first + answer.rows_given - 1;
  const rows = first === 1 || last < first ? formatRows(last) : rowsBetween(first, last);
  const cut = more ? ', and there are more' : answer.truncated ? `, cut off by ${answer.stopped_by ?? 'a limit'}` : '';
  const blocks = `${formatCount(answer.blocks_read)} of ${formatCount(answer.blocks_stored)} blocks`;
  return `${rows}${cut}; read ${blocks}, up to snapshot ${answer.last_snapshot}`;
}

const rowsBetween = (first: number, last: number): string =>
  first === last ? `row ${formatCount(first)}` : `rows ${formatCount(first)} to ${formatCount(last)}`;
