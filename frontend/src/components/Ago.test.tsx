import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { Ago } from './Ago';

afterEach(() => void vi.useRealTimers());

test('how long ago it was is right at once, also where nobody looked for a while', () => {
  vi.useFakeTimers();
  const at = new Date().toISOString();
  const shown = () => render(<Ago at={at} />, { wrapper: MantineProvider });
  shown().unmount();
  vi.advanceTimersByTime(30 * 60_000);
  shown();
  expect(screen.getByText('30 min ago')).toBeDefined();
});
