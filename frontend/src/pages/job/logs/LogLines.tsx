/** Entries of a log, as many as come: only those that are seen are drawn, and the end is kept in sight while it is. */
import { Button } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState, type ReactNode, type UIEvent } from 'react';
import type { LogLine } from './lines';
import { LogTime } from './LogTime';
import classes from './LogLines.module.css';

const ROW_PX = 27;
const ROWS_AROUND = 12;
const HEIGHT_PX = 560;
/** So near to its end the list counts as being there. */
const NEAR_PX = 40;

interface LogLinesProps {
  lines: LogLine[];
  sought: string;
  hasGenerations: boolean;
}

/** The entries that are drawn, with the newest in sight until somebody scrolls away from it. */
function useEnd(lines: LogLine[]) {
  const scrolled = useRef<HTMLDivElement>(null);
  const isByHand = useRef(false);
  const [isAtEnd, setAtEnd] = useState(true);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scrolled.current,
    estimateSize: () => ROW_PX,
    overscan: ROWS_AROUND,
    initialRect: { width: 800, height: HEIGHT_PX },
  });
  const size = virtual.getTotalSize();
  useLayoutEffect(() => {
    // Entries are measured when they are drawn, so the end moves on by that, too.
    if (isAtEnd) virtual.scrollToIndex(lines.length - 1, { align: 'end' });
  }, [isAtEnd, lines, size, virtual]);
  // It is left by hand only: entries that turn out to be higher or lower scroll the list, too.
  const takeOver = () => {
    isByHand.current = true;
  };
  const onScroll = ({ currentTarget }: UIEvent) => {
    if (!isByHand.current) return;
    const { scrollHeight, scrollTop, clientHeight } = currentTarget;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    isByHand.current = !isNear;
    setAtEnd(isNear);
  };
  const byHand = { onScroll, onWheel: takeOver, onTouchMove: takeOver, onPointerDown: takeOver, onKeyDown: takeOver };
  return { scrolled, virtual, isAtEnd, setAtEnd, byHand };
}

export function LogLines({ lines, sought, hasGenerations }: LogLinesProps) {
  const { scrolled, virtual, isAtEnd, setAtEnd, byHand } = useEnd(lines);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string) => {
    const next = new Set(opened);
    if (!next.delete(key)) next.add(key);
    setOpened(next);
    setAtEnd(false);
  };
  return (
    <div className={classes.around}>
      <div
        ref={scrolled}
        className={classes.scrolled}
        style={{ maxHeight: HEIGHT_PX }}
        {...byHand}
        tabIndex={0}
        role="region"
        aria-label="Entries of the log"
      >
        <ol className={classes.lines} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const line = lines[index];
            if (line === undefined) return null;
            const key = `${String(index)} ${line.time}`;
            return (
              <li
                key={index}
                ref={virtual.measureElement}
                data-index={index}
                data-level={line.level}
                data-generations={hasGenerations}
                className={classes.line}
                style={{ transform: `translateY(${String(start)}px)` }}
                aria-setsize={lines.length}
                aria-posinset={index + 1}
              >
                <Entry
                  line={line}
                  sought={sought}
                  hasGenerations={hasGenerations}
                  isOpen={opened.has(key)}
                  onToggle={() => toggle(key)}
                />
              </li>
            );
          })}
        </ol>
      </div>
      {!isAtEnd && (
        <Button className={classes.toEnd} variant="default" onClick={() => setAtEnd(true)}>
          To the newest
        </Button>
      )}
    </div>
  );
}

interface EntryProps {
  line: LogLine;
  sought: string;
  hasGenerations: boolean;
  isOpen: boolean;
  onToggle: () => void;
}

function Entry({ line, sought, hasGenerations, isOpen, onToggle }: EntryProps) {
  return (
    <>
      <LogTime className={classes.time} line={line} />
      <span className={classes.level}>{line.level}</span>
      {hasGenerations && (
        <span className={classes.generation} title="generation">
          {line.generation === null ? '–' : `g${String(line.generation)}`}
        </span>
      )}
      <span className={classes.message}>
        <Marked text={line.message} sought={sought} />
        {line.logger !== '' && <span className={classes.logger}>{line.logger}</span>}
        {line.more !== '' && (
          <More text={line.more} sought={sought} isOpen={isOpen} onToggle={onToggle} />
        )}
      </span>
    </>
  );
}

interface MoreProps {
  text: string;
  sought: string;
  isOpen: boolean;
  onToggle: () => void;
}

function More({ text, sought, isOpen, onToggle }: MoreProps) {
  const count = text.split('\n').length;
  return (
    <>
      <button type="button" className={classes.more} aria-expanded={isOpen} onClick={onToggle}>
        {isOpen ? 'less' : `${String(count)} more ${count === 1 ? 'line' : 'lines'}`}
      </button>
      {isOpen && (
        <pre className={classes.below}>
          <Marked text={text} sought={sought} />
        </pre>
      )}
    </>
  );
}

/** A text with what is sought marked in it. */
function Marked({ text, sought }: { text: string; sought: string }): ReactNode {
  const word = sought.trim().toLowerCase();
  if (word === '') return text;
  const parts: ReactNode[] = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + word.length)}</mark>);
    from = at + word.length;
  }
  return [...parts, text.slice(from)];
}
