import '@mantine/core/styles.css';
import './theme/global.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router';
import { queryClient } from './api/queryClient';
import { basePath, nonce } from './env';
import { App } from './shell/App';
import { theme } from './theme/theme';

// The scroll lock behind dialogs makes a style element of its own.
setNonce(nonce);

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no element "root"');

createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queryClient}>
        {/* A click shows at once. As a transition it would wait for a page that always renders, and the next be lost. */}
        <BrowserRouter basename={basePath} useTransitions={false}>
          <App />
        </BrowserRouter>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
