import { screen } from '@testing-library/react';
import { createRoot } from 'react-dom/client';
import { useSearchParams } from 'react-router';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Addresses } from './Addresses';

/** Switches, each of which keeps what the others put into the address, as the parts of a job's log do. */
function Parts() {
  const [parameters, setParameters] = useSearchParams();
  const on = parameters.getAll('part');
  return ['driver', 'spark', 'units'].map((part) => (
    <button key={part} onClick={() => setParameters({ part: [...on, part] }, { replace: true })}>
      {part}
    </button>
  ));
}

const place = document.createElement('div');

beforeEach(() => {
  // React as it is in a browser: nothing waits for it between two clicks.
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', false);
  document.body.append(place);
});
afterEach(() => {
  vi.unstubAllGlobals();
  place.remove();
});

test('clicks that follow each other at once are all in the address', async () => {
  const root = createRoot(place);
  root.render(
    <Addresses>
      <Parts />
    </Addresses>,
  );
  await screen.findByText('driver');
  for (const part of ['driver', 'spark', 'units']) {
    screen.getByText(part).click();
    await Promise.resolve(); // the browser does no more before the next click
  }
  expect(new URLSearchParams(window.location.search).getAll('part')).toEqual(['driver', 'spark', 'units']);
  root.unmount();
});
