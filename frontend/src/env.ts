/** What the page was served with: where the platform is, and the nonce that styles of our own making need. */

/** The platform's address, ending with a slash. */
export const baseUrl = new URL('.', document.baseURI);

/** The path of the platform's pages, without a slash at the end. */
export const basePath = baseUrl.pathname.replace(/\/$/, '');

export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';

/** The address of the websocket. */
export function socketUrl(): string {
  const url = new URL('api/v1/ws', baseUrl);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
