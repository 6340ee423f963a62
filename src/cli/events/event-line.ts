import type { SandboxEvent } from '../../tools/client/feeds.ts';
import type { Forwarded } from '../../tools/client/forward-event.ts';
import { colorOfStatus, printable, screenOf } from '../shell/terminal.ts';

/** Formats an event as one readable line. */
export function eventLine({ created_at_ms, type, id }: SandboxEvent): string {
  const { paint } = screenOf();
  return [
    paint('dim', new Date(created_at_ms).toISOString()),
    paint('cyan', printable(type)),
    paint('dim', id),
  ].join('  ');
}

/** Prints an event as one readable line, or in full as JSON. */
export function printEvent(event: SandboxEvent, { json }: { json?: boolean }): void {
  console.log(json === true ? JSON.stringify(event) : eventLine(event));
}

export function isAccepted({ status = 0 }: Forwarded): boolean {
  return status >= 200 && status < 300;
}

/** Formats the result of forwarding an event to an endpoint. */
export function forwardLine(forwarded: Forwarded): string {
  const { status, error, durationMs } = forwarded;
  const { paint } = screenOf();
  if (status === undefined) return paint('red', `not forwarded: ${error}`);
  return `${paint(colorOfStatus(status), String(status))} in ${durationMs} ms${isAccepted(forwarded) ? '' : ' (failed)'}`;
}
