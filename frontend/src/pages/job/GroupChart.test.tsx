import { MantineProvider } from '@mantine/core';
import { act, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import { Tail } from '../../live/tail';
import { GroupChart } from './GroupChart';

/** jsdom has neither a size nor a canvas. */
const { Canvas } = vi.hoisted(() => ({ Canvas: vi.fn<(props: { holds: boolean }) => null>(() => null) }));
vi.mock('../../charts/Canvas', () => ({ Canvas }));
vi.mock('@mantine/hooks', async (original) => ({
  ...(await original<typeof import('@mantine/hooks')>()),
  useElementSize: () => ({ ref: () => undefined, width: 400, height: 150 }),
}));

const COLUMNS = [
  { name: 'k', type: 'string' },
  { name: 'n', type: 'int64' },
  { name: 'top', type: 'float64' },
  { name: 'op', type: 'string' },
  { name: 'emit_time', type: 'timestamp[us, tz=UTC]' },
];
let tail: Tail;
let draw: () => void;

const change = (s: number, k: string, n: number | null, top: number | null, op = 'upsert') =>
  tail.onNews({
    rows: [[k, n, top, op, `2026-01-01T00:00:0${s}Z`]],
    snapshot: `${s}.0`,
    dropped: 0,
  });

beforeEach(() => {
  tail = new Tail((paint) => paint());
  tail.onColumns(COLUMNS, ['k']);
  const shown = () => (
    <MantineProvider env="test">
      <GroupChart view={tail.getView()} />
    </MantineProvider>
  );
  const { rerender } = render(shown());
  draw = () => act(() => rerender(shown()));
});

test('a line for each group, which goes on as the group changes', () => {
  expect(screen.queryByRole('img')).toBeNull();
  change(1, 'a', 5, 1.5);
  change(2, 'b', 7, 2.5);
  draw();
  expect(screen.getByRole('img', { name: /^n by k\. a: now 5, between 5 and 5; b: now 7/ })).toBeDefined();
  change(3, 'a', 9, 0.5);
  draw();
  expect(screen.getByRole('img', { name: /a: now 9, between 5 and 9/ })).toBeDefined();
  fireEvent.change(screen.getByLabelText('Drawn'), { target: { value: 'top' } });
  expect(screen.getByRole('img', { name: /^top by k\. a: now 0\.5, between 0\.5 and 1\.5/ })).toBeDefined();
});

test('a value holds until the next one', async () => {
  change(1, 'a', 5, 1);
  draw();
  await waitFor(() => expect(Canvas.mock.lastCall?.[0].holds).toBe(true));
});

test('the keyboard shows a part of it', () => {
  change(1, 'a', 5, 1);
  change(9, 'a', 8, 1);
  draw();
  const button = (name: string) => screen.getByRole<HTMLButtonElement>('button', { name });
  expect(button('Show all').disabled).toBe(true);
  fireEvent.click(button('Zoom in'));
  expect(button('Show all').disabled).toBe(false);
});

test('a pause holds the chart too, and clearing empties it', () => {
  change(1, 'a', 5, 1);
  tail.pause(true);
  change(2, 'a', 8, 1);
  draw();
  expect(screen.getByRole('img', { name: /a: now 5/ })).toBeDefined();
  tail.pause(false);
  draw();
  expect(screen.getByRole('img', { name: /a: now 8/ })).toBeDefined();
  tail.clear();
  draw();
  expect(screen.queryByRole('img')).toBeNull();
});
