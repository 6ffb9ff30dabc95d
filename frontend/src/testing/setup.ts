/** What jsdom lacks and Mantine asks for; and patience, for machines that do something else beside. */
import { cleanup, configure } from '@testing-library/react';
import { afterEach, vi } from 'vitest';

configure({ asyncUtilTimeout: 15_000 });
afterEach(cleanup);

/** An editor asks where its text is. */
Range.prototype.getClientRects = () => [] as unknown as DOMRectList;

vi.stubGlobal('matchMedia', (media: string) => ({
  media,
  matches: false,
  addEventListener: () => undefined,
  removeEventListener: () => undefined,
}));

vi.stubGlobal(
  'ResizeObserver',
  class {
    observe = () => undefined;
    unobserve = () => undefined;
    disconnect = () => undefined;
  },
);
