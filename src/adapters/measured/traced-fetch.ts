import { inSpan, outgoingHeaders } from '../../spans.ts';

interface TracedRequest extends Omit<RequestInit, 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
  /** What is called, for example `node eth_call`. */
  readonly span: string;
}

/** `fetch` as a span of the current trace, which the other side can continue. Only the host of the URL is recorded. */
export function tracedFetch(
  url: string | URL,
  { span, headers, ...request }: TracedRequest,
): Promise<Response> {
  const attributes = { 'server.address': new URL(url).host };
  return inSpan({ name: span, kind: 'client', attributes }, () =>
    fetch(url, { ...request, headers: { ...headers, ...outgoingHeaders() } }),
  );
}
