import type { SentRequest } from '../generated/schemas.ts';
import type { ApiResponse } from './own-api.ts';
import type { Redaction } from './redact.ts';

/** The response to a request of the control plane, without its secrets. */
export function sentRequest(
  { status, requestId, text }: ApiResponse,
  operation: string | undefined,
  redaction: Redaction,
): SentRequest {
  const responseText = text === '' ? undefined : text;
  return {
    request_id: requestId ?? null,
    status,
    body: redaction.responseBody({ responseText, status, operation }),
  };
}
