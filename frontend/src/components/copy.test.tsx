import { MantineProvider } from '@mantine/core';
import { act, fireEvent, render, renderHook, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { copyText, useCopied } from '../copy';
import { CopyAs } from './CopyAs';
import { CopyButton } from './CopyButton';

const bare = navigator;

afterEach(() => {
  vi.useRealTimers();
  vi.stubGlobal('navigator', bare);
});

test('copy buttons say what they copy, and tell that they did', async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } });
  render(
    <MantineProvider env="test">
      <CopyAs recipe={{ curl: 'curl x', cli: 'streamjoin x', python: 'x()' }} what="stop this job" />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Copy as curl, command line or Python: stop this job' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Copy as command line' }));
  await screen.findByText('Copied as command line', { selector: '[role=status]' });
  expect(writeText).toHaveBeenCalledWith('streamjoin x');
});

test('each copy is told for as long as the first', async () => {
  vi.useFakeTimers();
  vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: () => Promise.resolve() } });
  const { result } = renderHook(useCopied);
  const copy = (name: string) =>
    act(() => {
      result.current.copy(name, 'x');
      return Promise.resolve();
    });
  const wait = (ms: number) => act(() => void vi.advanceTimersByTime(ms));
  await copy('one');
  wait(1_300);
  await copy('other');
  wait(1_300);
  expect(result.current.copied).toBe('other');
  wait(300);
  expect(result.current.copied).toBeNull();
});

test('a browser that refuses to copy is told', async () => {
  vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: () => Promise.reject(new Error('no')) } });
  render(
    <MantineProvider env="test">
      <CopyButton text="x" what="the query" />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Copy the query' }));
  await screen.findByText('The browser refused to copy the query', { selector: '[role=status]' });
});

test('without a clipboard, too, what was not copied does not count as copied', async () => {
  vi.stubGlobal('navigator', { ...navigator, clipboard: undefined });
  document.execCommand = () => false;
  await expect(copyText('x')).rejects.toThrow();
  document.execCommand = () => true;
  await copyText('x');
  expect(document.querySelector('textarea')).toBeNull();
});
