import type { PropsWithChildren } from 'react';
import { BrowserRouter } from 'react-router';
import { basePath } from '../env';

/** Pages by their addresses. */
export function Addresses({ children }: PropsWithChildren) {
  // A click shows at once. As a transition it would wait for a page that always renders, and the next be lost.
  return (
    <BrowserRouter basename={basePath} useTransitions={false}>
      {children}
    </BrowserRouter>
  );
}
