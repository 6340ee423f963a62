import type { AnsweredRequest } from '../../ports/request-recorder.ts';
import type { RecordedExchange, RecordedRequest } from '../generated/schemas.ts';
import type { Redaction } from './redact.ts';

/** A request without its headers and bodies. */
export function requestSummary(answered: AnsweredRequest): RecordedRequest {
  const { operation, appId, code, why } = answered;
  return {
    id: answered.id,
    received_at_ms: answered.receivedAtMs,
    duration_ms: Math.round(answered.durationMs * 1000) / 1000,
    method: answered.method,
    path: answered.target,
    operation: operation ?? null,
    app_id: appId ?? null,
    wallet_id: walletOf(answered) ?? null,
    status: answered.status,
    code: code ?? null,
    hint: why?.hint ?? null,
  };
}

/** A request with everything that is known of it but the trace of a denial, which is stored elsewhere. */
export function requestDetails(
  answered: AnsweredRequest,
  redaction: Redaction,
): Omit<RecordedExchange, 'policy_trace'> {
  const { rawBody, responseText, effects, why } = answered;
  return {
    ...requestSummary(answered),
    request: {
      headers: redaction.requestHeaders(answered),
      body_bytes: rawBody.length,
      body: redaction.requestBody(answered),
    },
    response: {
      headers: redaction.responseHeaders(answered),
      body_bytes: responseText === undefined ? 0 : Buffer.byteLength(responseText),
      body: redaction.responseBody(answered),
    },
    user_id: answered.userId ?? null,
    signatures_sent: answered.signatures,
    authorized_by: [...(answered.signers ?? [])],
    events: effects.flatMap(({ events }) => events.map(({ id, type }) => ({ id, type }))),
    transaction_ids: effects.flatMap(({ transactions }) => transactions),
    why: why === undefined ? null : { kind: why.kind, hint: why.hint, evidence: { ...why.evidence } },
  };
}

/** The wallet that a request is about: named in its path, or created by it. */
function walletOf({ pathParameters, operation, status, responseText }: AnsweredRequest): string | undefined {
  const { wallet_id: id } = pathParameters ?? {};
  if (id !== undefined || operation !== 'createWallet' || status >= 400 || responseText === undefined)
    return id;
  return (JSON.parse(responseText) as { id?: string }).id;
}

/** Whether a request names a wallet: in its path or body, or in the response. */
export function namesWallet({ target, rawBody, responseText }: AnsweredRequest, walletId: string): boolean {
  return (
    target.includes(walletId) ||
    responseText?.includes(walletId) === true ||
    (rawBody.length > 0 && Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.length).includes(walletId))
  );
}
