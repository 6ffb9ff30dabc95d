import type { PropsWithChildren } from 'react';
import { BrowserRouter } from 'react-router';
import { basePath } from '../env';

/** Shows pages by their address. */
export function Addresses({ children }: PropsWithChildren) {
  // A click takes effect at once. As a transition it would wait while a page keeps rendering, and the next would be lost.
  return (
    <BrowserRouter basename={basePath} useTransitions={false}>
      {children}
    </BrowserRouter>
  );
}
