/** The page's one websocket. */
import { useSyncExternalStore } from 'react';
import { socketUrl } from '../env';
import { LiveSocket, type SocketState, type Wire, type WireEvents } from './socket';

const PROTOCOL = 'streamjoin.v1';

function connect({ onOpen, onText, onClose }: WireEvents): Wire {
  const socket = new WebSocket(socketUrl(), PROTOCOL);
  socket.addEventListener('open', onOpen);
  socket.addEventListener('message', ({ data }) => typeof data === 'string' && onText(data));
  socket.addEventListener('close', ({ code }) => onClose(code));
  return socket;
}

export const live = new LiveSocket(connect);

document.addEventListener('visibilitychange', () => live.sleep(document.visibilityState === 'hidden'));

export const useSocketState = (): SocketState => useSyncExternalStore(live.watch, live.state);
