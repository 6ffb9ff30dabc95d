import { expect, test, vi } from 'vitest';
import { painterOf, placeOf } from './paint';

function cellsOf(count: number): HTMLElement[] {
  const list = document.createElement('div');
  list.innerHTML = '<div data-place><span>name</span><span>–</span></div>'.repeat(count);
  return [...list.querySelectorAll<HTMLElement>('[data-place]')];
}

const format = (value: number | null) => (value === null ? '–' : String(value));

test('each cell gets its share of the largest, its value, and the mark of being looked at', () => {
  const cells = cellsOf(3);
  const painter = painterOf(cells);
  painter.paint({ values: [5, 10, null], most: 10, format, isNamed: true, place: 1 });
  expect(cells.map((cell) => cell.style.getPropertyValue('--share'))).toEqual(['50%', '100%', '0%']);
  expect(cells.map((cell) => cell.lastElementChild?.textContent)).toEqual(['5', '10', '–']);
  painter.paint({ values: [5, 10, null], most: 10, format, isNamed: true, place: 2 });
  expect(cells.map((cell) => cell.getAttribute('aria-selected'))).toEqual(['false', 'false', 'true']);
});

test('what did not change is not written again', () => {
  const cells = cellsOf(2);
  const painter = painterOf(cells);
  painter.paint({ values: [5, 10], most: 10, format, isNamed: true, place: 0 });
  const written = cells.map((cell) => vi.spyOn(cell.style, 'setProperty'));
  painter.paint({ values: [5, 10], most: 10, format, isNamed: true, place: 0 });
  painter.paint({ values: [6, 10], most: 10, format, isNamed: true, place: 0 });
  expect(written.map((spy) => spy.mock.calls.length)).toEqual([1, 0]);
});

test('of many cells only the one that is looked at is written into', () => {
  const cells = cellsOf(3);
  painterOf(cells).paint({ values: [5, 10, 7], most: 10, format, isNamed: false, place: 1 });
  expect(cells.map((cell) => cell.lastElementChild?.textContent)).toEqual(['–', '10', '–']);
  expect(cells[2]?.style.getPropertyValue('--share')).toBe('70%');
});

test('arrow keys lead through rows and columns, and not out of them', () => {
  const cells = cellsOf(5);
  cells.forEach((cell, place) => {
    const [left, top] = [(place % 3) * 20, Math.floor(place / 3) * 20];
    cell.getBoundingClientRect = () => ({ left, top }) as DOMRect;
  });
  expect(placeOf('ArrowRight', 4, cells)).toBe(4);
  expect(placeOf('ArrowLeft', 1, cells)).toBe(0);
  expect(placeOf('ArrowDown', 1, cells)).toBe(4);
  expect(placeOf('ArrowDown', 2, cells)).toBe(4);
  expect(placeOf('ArrowUp', 4, cells)).toBe(1);
  expect(placeOf('ArrowUp', 1, cells)).toBe(1);
  expect(placeOf('Tab', 1, cells)).toBeNull();
});
