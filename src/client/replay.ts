import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Replay, ReplayInput } from '../domain/requests/policy-desk/replay-policy.ts';
import { StartError } from '../start-error.ts';

export type { Replay };

/** The server that is asked. */
export type ReplayTarget =
  /** The ready file of a running sandbox. */
  | { readonly kind: 'ready_file'; readonly file: string }
  /** The admin port of a running server. */
  | { readonly kind: 'url'; readonly url: string };

/**
 * Judges the recorded requests of a wallet by a draft.
 *
 * @throws StartError when the server cannot be asked or refuses.
 */
export async function replayPolicies(target: ReplayTarget, input: ReplayInput): Promise<Replay> {
  switch (target.kind) {
    case 'ready_file': {
      const ready = readReadyFile(target.file);
      const url = `${ready.base_url}/_sandbox/policies/replay`;
      return ask(url, input, readFileSync(ready.ca_file, 'utf8'));
    }
    case 'url':
      return ask(`${target.url.replace(/\/+$/, '')}/policies/replay`, input);
  }
}

function readReadyFile(file: string): { readonly base_url: string; readonly ca_file: string } {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { base_url: string; ca_file: string };
  } catch (cause) {
    throw new StartError(`\`${file}\` is not the ready file of a running sandbox`, { cause });
  }
}

function ask(url: string, input: ReplayInput, ca?: string): Promise<Replay> {
  const body = JSON.stringify(input);
  const options = {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    ...(ca === undefined ? {} : { ca }),
  };
  const send = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        if (response.statusCode === 200) resolve(JSON.parse(text) as Replay);
        else reject(new StartError(`${url} answered ${response.statusCode}: ${reasonIn(text)}`));
      });
    });
    request.on('error', (cause) =>
      reject(new StartError(`${url} cannot be asked: ${cause.message}`, { cause })),
    );
    request.end(body);
  });
}

function reasonIn(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: unknown }).error);
  } catch {
    return text.slice(0, 200);
  }
}
