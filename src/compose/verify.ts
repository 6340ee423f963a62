import { loadOrCreateCertificate, temporaryCertificateFolder } from '../adapters/certificate.ts';
import { systemClock } from '../adapters/clock.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { combinationsOf } from '../contract/combinations.ts';
import type { ContractDocument } from '../contract/contract-document.ts';
import { secretProperties } from '../generated/secrets.ts';
import { packageVersion } from '../package-root.ts';
import type { AnsweredRequest } from '../ports/request-recorder.ts';
import { httpArchiveOf } from '../sandbox/requests/http-archive.ts';
import { redactionFor } from '../sandbox/requests/redact.ts';
import { createRequestLog } from '../sandbox/requests/request-log.ts';
import { compareAnswers } from '../verify/compare-answers.ts';
import { judgeExchange, operationOf, prefixOf, type SeenExchange } from '../verify/judge-exchange.ts';
import { type ExchangeTiming, openUpstream, startProxy, type Upstream } from '../verify/proxy.ts';
import { collectFindings, type Verification } from '../verify/verify-report.ts';

export interface VerifyOptions {
  readonly host: string;
  readonly port: number;
  readonly target: Upstream;
  /** A sandbox that gets the same requests; its answers are compared and thrown away. */
  readonly sandbox: Upstream | undefined;
  readonly document: ContractDocument;
}

export interface RunningVerifier {
  readonly url: string;
  readonly caFile: string;
  verification(): Verification;
  /** The latest exchanges as HTTP Archive, without secrets. */
  archive(): Promise<object>;
  close(): Promise<void>;
}

/** Starts a proxy in front of a server that compares every exchange with the contract. */
export async function startVerifier(options: VerifyOptions): Promise<RunningVerifier> {
  const { host, port, target, document } = options;
  const certificate = await loadOrCreateCertificate(temporaryCertificateFolder(), {
    clock: systemClock,
    entropy: systemEntropy,
    hosts: [host],
  });
  const codes = documentedCodes(document);
  const found = collectFindings();
  const log = createRequestLog(() => 'verify');
  const sandbox = options.sandbox === undefined ? undefined : openUpstream(options.sandbox);
  const comparing = new Set<Promise<void>>();
  let prefix = 'service';
  const onExchange = (exchange: SeenExchange, timing: ExchangeTiming): void => {
    const route = operationOf(exchange);
    const example = `${exchange.method} ${exchange.target}`;
    prefix = prefixOf(exchange.requestHeaders);
    log.record(answeredOf(exchange, timing, route?.operation.id));
    found.add(judgeExchange(exchange, codes), example, route !== undefined);
    if (sandbox === undefined || route === undefined) return;
    const compared = compareWithSandbox(exchange, route.operation.id, sandbox).then((findings) =>
      found.add(findings, example, false),
    );
    comparing.add(compared);
    void compared.finally(() => comparing.delete(compared));
  };
  const proxy = await startProxy({
    ...{ host, port, tls: certificate, upstream: target, onExchange },
    onFailure({ method, target: path }, message) {
      const place = `${method} ${path.split('?')[0]}`;
      found.add(
        [{ rule: 'target-unreachable', severity: 'error', place, message }],
        `${method} ${path}`,
        false,
      );
    },
  });
  const url = `https://${host}:${proxy.port}`;
  return {
    url,
    caFile: certificate.caFile,
    verification: found.verification,
    archive() {
      const { oldest, newest } = log.range();
      const kept = Array.from({ length: newest - oldest + 1 }, (_, index) => log.at(oldest + index)!);
      const redaction = redactionFor(secretProperties, prefix);
      return httpArchiveOf(kept, { redaction, origin: url, version: packageVersion() });
    },
    async close() {
      await proxy.close();
      await Promise.all(comparing);
      sandbox?.close();
    },
  };
}

/** The documented error codes by `<operation> <status>`. */
function documentedCodes(document: ContractDocument): ReadonlyMap<string, ReadonlySet<string>> {
  const codes = new Map<string, Set<string>>();
  for (const { name, kind } of combinationsOf(document)) {
    if (kind !== 'error') continue;
    const [operation, status, code = ''] = name.split(' ');
    const place = `${operation} ${status}`;
    codes.set(place, (codes.get(place) ?? new Set()).add(code));
  }
  return codes;
}

async function compareWithSandbox(
  exchange: SeenExchange,
  operation: string,
  sandbox: ReturnType<typeof openUpstream>,
): Promise<ReturnType<typeof compareAnswers>> {
  const { method, target, requestHeaders: headers, requestBody: body, status, responseBody } = exchange;
  const place = `${operation} ${status}`;
  try {
    const answer = await sandbox.request({ method, target, headers, body });
    return compareAnswers(
      place,
      { status, body: parsed(responseBody) },
      { status: answer.status, body: parsed(answer.body) },
    );
  } catch (error) {
    const message = `the sandbox did not answer: ${(error as Error).message}`;
    return [{ rule: 'sandbox-differs', severity: 'error', place, message }];
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return body.length === 0 ? undefined : body.toString('utf8');
  }
}

function answeredOf(
  exchange: SeenExchange,
  { rawHeaders, startedMs, durationMs }: ExchangeTiming,
  operation: string | undefined,
): AnsweredRequest {
  const { status, responseBody, responseHeaders } = exchange;
  const body = parsed(responseBody) as { code?: unknown } | undefined;
  return {
    ...{
      id: String(responseHeaders['x-request-id'] ?? ''),
      method: exchange.method,
      target: exchange.target,
    },
    ...{ httpVersion: '1.1', rawHeaders, rawBody: exchange.requestBody, operation, status, durationMs },
    ...{ receivedAtMs: startedMs, machineMs: startedMs, pathParameters: undefined, appId: undefined },
    ...{ userId: undefined, signatures: 0, signers: undefined, effects: [], why: undefined },
    code: typeof body?.code === 'string' ? body.code : undefined,
    responseHeaders: [responseHeaders],
    responseText: responseBody.length === 0 ? undefined : responseBody.toString('utf8'),
  };
}
