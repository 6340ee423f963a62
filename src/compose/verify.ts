import { loadOrCreateCertificate, temporaryCertificateFolder } from '../adapters/certificate.ts';
import { systemClock, systemEntropy } from '../adapters/runtime.ts';
import { packageVersion } from '../config/package-root.ts';
import { secretProperties } from '../generated/secrets.ts';
import type { AnsweredRequest } from '../ports/requests.ts';
import { httpArchiveOf } from '../sandbox/requests/http-archive.ts';
import { redactionFor } from '../sandbox/requests/redact.ts';
import { createRequestLog } from '../sandbox/requests/request-log.ts';
import { type ContractDocument, combinationsOf } from '../tools/contract/contract-document.ts';
import { parsedBody, startComparison } from '../tools/verify/comparison.ts';
import {
  type DocumentedCodes,
  judgeExchange,
  operationIdOf,
  prefixOf,
  type SeenExchange,
} from '../tools/verify/judge-exchange.ts';
import { type ExchangeTiming, startProxy, type Upstream } from '../tools/verify/proxy.ts';
import { collectFindings, type Verification } from '../tools/verify/verify-report.ts';

export interface VerifyOptions {
  readonly host: string;
  readonly port: number;
  readonly target: Upstream;
  /** A sandbox to which the same requests are sent. Its responses are compared with the server's, then discarded. */
  readonly sandbox: Upstream | undefined;
  /** The document against which responses are checked. */
  readonly document: ContractDocument;
}

export interface RunningVerifier {
  readonly url: string;
  readonly caFile: string;
  verification(): Verification;
  /** Returns the latest exchanges as an HTTP Archive, without secrets. */
  archive(): Promise<object>;
  close(): Promise<void>;
}

/** Starts a proxy in front of a server. It compares every request and response with the API document. */
export async function startVerifier(options: VerifyOptions): Promise<RunningVerifier> {
  const { host, port, target } = options;
  const codes = documentedCodes(options.document);
  const certificate = await loadOrCreateCertificate(temporaryCertificateFolder(), {
    clock: systemClock,
    entropy: systemEntropy,
    hosts: [host],
  });
  const found = collectFindings();
  const log = createRequestLog(() => 'verify');
  const comparison = options.sandbox === undefined ? undefined : startComparison(options.sandbox, found.add);
  let prefix = 'service';
  const onExchange = (exchange: SeenExchange, timing: ExchangeTiming): void => {
    const operation = operationIdOf(exchange);
    const example = `${exchange.method} ${exchange.target}`;
    prefix = prefixOf(exchange.requestHeaders);
    log.record(answeredOf(exchange, timing, operation));
    found.add(judgeExchange(exchange, codes), example, operation !== undefined);
    if (operation !== undefined) comparison?.add(exchange, operation);
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
      await comparison?.close();
    },
  };
}

function documentedCodes(document: ContractDocument): DocumentedCodes {
  const codes = new Map<string, Set<string>>();
  for (const { name, kind } of combinationsOf(document)) {
    if (kind !== 'error') continue;
    const [operation, status, code = ''] = name.split(' ');
    const place = `${operation} ${status}`;
    codes.set(place, (codes.get(place) ?? new Set()).add(code));
  }
  return codes;
}

function answeredOf(
  exchange: SeenExchange,
  { rawHeaders, startedMs, durationMs }: ExchangeTiming,
  operation: string | undefined,
): AnsweredRequest {
  const { status, responseBody, responseHeaders } = exchange;
  const body = parsedBody(responseBody) as { code?: unknown } | undefined;
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
