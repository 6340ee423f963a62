import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { StartError } from '../../config/start-error.ts';
import type { LintInput, PolicyLint } from '../../domain/requests/policy-analysis/lint-policy.ts';
import type { Replay, ReplayInput } from '../../domain/requests/policy-analysis/replay-policy.ts';

export type { PolicyLint, Replay };

/** The server that evaluates the requests. */
export type ReplayTarget =
  /** The ready file of a running sandbox. */
  | { readonly kind: 'ready_file'; readonly file: string }
  /** A running sandbox. */
  | {
      readonly kind: 'sandbox';
      readonly url: string;
      readonly caFile?: string;
      readonly controlToken?: string;
    }
  /** The admin port of a running server. */
  | { readonly kind: 'url'; readonly url: string; readonly operatorSecret: string | undefined };

/**
 * Evaluates the recorded requests of a wallet under a draft policy.
 *
 * @throws StartError if the server cannot be reached or rejects the request.
 */
export async function replayPolicies(target: ReplayTarget, input: ReplayInput): Promise<Replay> {
  return (await requestAnalysis(target, 'replay', input)) as Replay;
}

/**
 * Finds requests that a policy allows only because they use another method.
 *
 * @throws the errors of `replayPolicies`.
 */
export async function lintPolicyAt(target: ReplayTarget, input: LintInput): Promise<PolicyLint> {
  return (await requestAnalysis(target, 'lint', input)) as PolicyLint;
}

async function requestAnalysis(
  target: ReplayTarget,
  question: 'replay' | 'lint',
  input: object,
): Promise<unknown> {
  switch (target.kind) {
    case 'ready_file': {
      const { base_url: url, ca_file: caFile } = readReadyFile(target.file);
      return requestAnalysis({ kind: 'sandbox', url, caFile }, question, input);
    }
    case 'sandbox': {
      const url = `${target.url}/_sandbox/policies/${question}`;
      const { caFile, controlToken: operatorSecret } = target;
      const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
      return post(url, input, { ca, operatorSecret });
    }
    case 'url':
      return post(`${target.url.replace(/(?<!\/)\/+$/, '')}/policies/${question}`, input, target);
  }
}

function readReadyFile(file: string): { readonly base_url: string; readonly ca_file: string } {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { base_url: string; ca_file: string };
  } catch (cause) {
    throw new StartError(`expected the ready file of a running sandbox, got \`${file}\``, { cause });
  }
}

function post(
  url: string,
  input: object,
  { ca, operatorSecret }: { ca?: string | undefined; operatorSecret?: string | undefined },
): Promise<unknown> {
  const body = JSON.stringify(input);
  const options = {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(operatorSecret === undefined ? {} : { authorization: `Bearer ${operatorSecret}` }),
    },
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
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new StartError(`${url} returned ${response.statusCode}: ${reasonIn(text)}`));
      });
    });
    request.on('error', (cause) =>
      reject(new StartError(`${url} cannot be reached: ${cause.message}`, { cause })),
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
