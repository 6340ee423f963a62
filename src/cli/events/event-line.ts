import type { SandboxEvent } from '../../tools/client/feeds.ts';
import type { Forwarded } from '../../tools/client/forward-event.ts';

/** Formats an event as one readable line. */
export function eventLine({ created_at_ms, type, id }: SandboxEvent): string {
  return `${new Date(created_at_ms).toISOString()}  ${type}  ${id}`;
}

/** Prints an event as one readable line, or in full as JSON. */
export function printEvent(event: SandboxEvent, { json }: { json?: boolean }): void {
  console.log(json === true ? JSON.stringify(event) : eventLine(event));
}

export function isAccepted({ status = 0 }: Forwarded): boolean {
  return status >= 200 && status < 300;
}

/** Formats the result of a forwarded delivery. */
export function forwardLine(forwarded: Forwarded): string {
  const { status, error, durationMs } = forwarded;
  if (status === undefined) return `not forwarded: ${error}`;
  return `${status} in ${durationMs} ms${isAccepted(forwarded) ? '' : ' (failed)'}`;
}
