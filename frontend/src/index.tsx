import '@mantine/core/styles.css';
import './theme/global.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/queryClient';
import { nonce } from './env';
import { Addresses } from './shell/Addresses';
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
        <Addresses>
          <App />
        </Addresses>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
