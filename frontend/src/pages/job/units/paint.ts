/** Writes figures into cells that are there already: hundreds of units cost no drawing of the page anew. */

export interface Figures {
  values: (number | null)[];
  most: number;
  format: (value: number | null) => string;
  /** The cell that is looked at. */
  place: number;
  /** Values are written into all cells, and not only into the one that is looked at. */
  isNamed: boolean;
}

interface Cell {
  element: HTMLElement;
  text: Text | null;
  share: string;
  value: string;
}

export interface Painter {
  paint: (figures: Figures) => void;
}

const SHARES = 100;

/** A cell is an element with `data-place`; its value is the text in its last child. */
export function painterOf(cells: Iterable<HTMLElement>): Painter {
  const known = [...cells].map((element): Cell => {
    const text = element.lastElementChild?.firstChild;
    element.setAttribute('aria-selected', 'false');
    return { element, text: text instanceof Text ? text : null, share: '', value: '' };
  });
  let looked: HTMLElement | undefined;
  return {
    paint({ values, most, format, place, isNamed }) {
      known.forEach((cell, number) => {
        const value = values[number] ?? null;
        const share = String(most > 0 && value !== null ? Math.round((value / most) * SHARES) : 0);
        if (share !== cell.share) {
          cell.share = share;
          cell.element.style.setProperty('--share', `${share}%`);
        }
        if (!isNamed && number !== place) return;
        const shown = format(value);
        if (shown !== cell.value && cell.text !== null) {
          cell.value = shown;
          cell.text.data = shown;
        }
      });
      const now = known[place]?.element;
      if (now === looked) return;
      looked?.setAttribute('aria-selected', 'false');
      now?.setAttribute('aria-selected', 'true');
      looked = now;
    },
  };
}

const STEPS: Record<string, 1 | -1> = { ArrowLeft: -1, ArrowRight: 1 };

/** The cell that a key leads to; null for other keys. Up and down lead to the cell above and below. */
export function placeOf(key: string, place: number, cells: ArrayLike<HTMLElement>): number | null {
  const last = cells.length - 1;
  const step = STEPS[key];
  if (step !== undefined) return Math.min(Math.max(place + step, 0), last);
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  if (key !== 'ArrowUp' && key !== 'ArrowDown') return null;
  const from = cells[place]?.getBoundingClientRect();
  if (from === undefined) return null;
  let best = place;
  let bestScore = Infinity;
  for (let other = 0; other <= last; other += 1) {
    const to = cells[other]?.getBoundingClientRect();
    const down = to === undefined ? 0 : (to.top - from.top) * (key === 'ArrowDown' ? 1 : -1);
    if (to === undefined || down < 1) continue;
    // The next row first, and there the cell that is nearest.
    const score = down * 10_000 + Math.abs(to.left - from.left);
    if (score < bestScore) [best, bestScore] = [other, score];
  }
  return best;
}
