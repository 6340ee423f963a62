import type { SandboxEvent } from '../client/event-feed.ts';

/** Formats an event as one readable line. */
export function eventLine({ created_at_ms, type, id }: SandboxEvent): string {
  return `${new Date(created_at_ms).toISOString()}  ${type}  ${id}`;
}

/** Prints an event as one readable line, or in full as JSON. */
export function printEvent(event: SandboxEvent, { json }: { json?: boolean }): void {
  console.log(json === true ? JSON.stringify(event) : eventLine(event));
}
