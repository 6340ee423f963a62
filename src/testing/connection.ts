import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { Agent } from 'undici';
import type { Sandbox } from '../compose/sandbox.ts';
import type { ReceivedResponse, SandboxClient, SentRequest } from '../tools/client/sandbox-client.ts';
import { CallRefusedError, type Refusal } from './types.ts';

/** A client whose connections trust only the certificate authority of a sandbox in this process. */
export interface Connection extends SandboxClient {
  readonly dispatcher: Agent;
  destroy(): Promise<void>;
}

/** Connects to a sandbox. `prefix` is the prefix of its header names. */
export function connect(sandbox: Sandbox, prefix: string): Connection {
  const { baseUrl, appId, appSecret, caFile } = sandbox;
  const dispatcher = new Agent({ connect: { ca: sandbox.caPem } });
  const send = async (
    { method, target, headers, bodyText }: SentRequest,
    signal?: AbortSignal,
  ): Promise<ReceivedResponse> => {
    const answer = await dispatcher.request({
      ...{ origin: baseUrl, path: target, method: method as 'GET', headers, body: bodyText ?? null },
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, statusText: '', headers: answer.headers, text };
  };
  return {
    dispatcher,
    send: (request) => send(request),
    url: () => baseUrl,
    place: () => ({ url: baseUrl, caFile, appId, appSecret, prefix }),
    async call<Body>(method: string, path: string, options: { body?: unknown; signal?: AbortSignal } = {}) {
      const { body, signal } = options;
      const bodyText = body === undefined ? undefined : JSON.stringify(body);
      const headers: Record<string, string> =
        bodyText === undefined ? {} : { 'content-type': 'application/json' };
      const { status, text } = await send({ method, target: `/_sandbox${path}`, headers, bodyText }, signal);
      const answer = JSON.parse(text);
      if (status >= 400) throw new CallRefusedError(`${method} /_sandbox${path}`, status, answer as Refusal);
      return answer as Body;
    },
    close: () => undefined,
    destroy: () => dispatcher.destroy(),
  };
}

const trusted = new Set<string>();

/** Makes all later connections of this process trust an authority, in addition to those that it trusts already. */
export function trustInProcess(caPem: string): void {
  if (trusted.has(caPem)) return;
  setDefaultCACertificates([...getCACertificates('default'), caPem]);
  trusted.add(caPem);
}
