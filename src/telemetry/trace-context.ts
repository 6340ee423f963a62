/** The trace that a request belongs to, and the span that is open. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** `tracestate` of the sender, passed on unchanged. */
  readonly state: string | undefined;
}

const MAX_STATE_CHARACTERS = 512;

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads `traceparent` and `tracestate` (W3C Trace Context, sections 3.2 and 3.3). Undefined if there is no valid one, so
 * that a new trace begins.
 */
export function readTraceParent(parent: unknown, state: unknown): TraceContext | undefined {
  const match = typeof parent === 'string' ? shape.exec(parent) : null;
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = match;
  // Later versions may append fields; version 00 has none, and ff is forbidden.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const isKept =
    typeof state === 'string' && state.length <= MAX_STATE_CHARACTERS && /^[\x20-\x7e]+$/.test(state);
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags, 16) & 1) === 1,
    state: isKept ? state : undefined,
  };
}

/** The headers that continue the trace. */
export function traceHeaders({ traceId, spanId, isSampled, state }: TraceContext): Record<string, string> {
  const traceparent = `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
  return state === undefined ? { traceparent } : { traceparent, tracestate: state };
}
