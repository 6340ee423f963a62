import { HpkeError } from '../engine/crypto/hpke.ts';
import { SigningInputError } from '../engine/signing/signing-errors.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { WebhookSender } from '../ports/webhooks.ts';
import { inSpan, outgoingHeaders } from './spans.ts';

/** Called after every call of a key store, with the name of the method. */
type ObserveKeyStore = (call: string, durationMs: number, hasFailed: boolean) => void;

/** Wraps a key store and measures each call until its result. */
export function measuredKeyStore(keyStore: KeyStore, observe: ObserveKeyStore | undefined): KeyStore {
  if (observe === undefined) return keyStore;
  const measured =
    (name: string, method: (...args: never[]) => Promise<unknown>) =>
    async (...args: never[]): Promise<unknown> => {
      const startedMs = performance.now();
      let hasFailed = false;
      try {
        return await inSpan({ name: `key store ${name}`, kind: 'internal' }, () => method(...args));
      } catch (error) {
        // A refusal of the caller's input is not a failure of the key store.
        hasFailed = !(error instanceof SigningInputError || error instanceof HpkeError);
        throw error;
      } finally {
        observe(name, performance.now() - startedMs, hasFailed);
      }
    };
  const members = Object.entries(Object.getOwnPropertyDescriptors(keyStore)).map(([name, member]) => [
    name,
    // The value of a getter may change, so getters stay getters.
    typeof member.value === 'function' ? { ...member, value: measured(name, member.value) } : member,
  ]);
  return Object.defineProperties({}, Object.fromEntries(members)) as KeyStore;
}

/** Called after every attempt to deliver an event. */
type ObserveWebhook = (result: string, durationMs: number) => void;

/** Wraps a sender and measures its attempts. The results are `delivered`, `refused` and the failures of the port. */
export function measuredWebhooks(sender: WebhookSender, observe: ObserveWebhook | undefined): WebhookSender {
  if (observe === undefined) return sender;
  return {
    ...sender,
    async send(request) {
      const span = { name: 'webhook', kind: 'client', isRoot: true } as const;
      const attributes = { 'custos.event': request.event.type };
      const outcome = await inSpan({ ...span, attributes }, () => sender.send(request));
      const { status, failure, durationMs } = outcome;
      const isDelivered = status !== undefined && status >= 200 && status < 300;
      observe(failure ?? (isDelivered ? 'delivered' : 'refused'), durationMs);
      return outcome;
    },
  };
}

interface TracedRequest extends Omit<RequestInit, 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
  /** The name of the call, for example `node eth_call`. */
  readonly span: string;
}

/**
 * Wraps `fetch` in a span of the current trace, which the other side can continue. Only the host of the URL is
 * recorded.
 */
export function tracedFetch(
  url: string | URL,
  { span, headers, ...request }: TracedRequest,
): Promise<Response> {
  const attributes = { 'server.address': new URL(url).host };
  return inSpan({ name: span, kind: 'client', attributes }, () =>
    fetch(url, { ...request, headers: { ...headers, ...outgoingHeaders() } }),
  );
}
