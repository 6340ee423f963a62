import type { SandboxEvent } from '../../tools/client/feeds.ts';
import type { Forwarded } from '../../tools/client/forward-event.ts';
import { colorOfStatus, printable, type Screen, screenOf } from '../shell/terminal.ts';

/** Formats an event as one readable line. A terminal shows what the event is about, a pipe the exact time. */
export function eventLine(
  { created_at_ms: atMs, type, id, subject, wallet, user }: SandboxEvent,
  screen: Screen = screenOf(),
): string {
  const { paint, isTerminal } = screen;
  const time = new Date(atMs).toISOString();
  const about = subject?.name ?? wallet?.name ?? user?.name ?? '';
  return [
    paint('dim', isTerminal ? time.slice(11, 23) : time),
    paint('cyan', printable(type)),
    ...(isTerminal && about !== '' ? [printable(about)] : []),
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
