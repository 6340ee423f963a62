import type { SandboxEvent } from '../client/event-feed.ts';

/** An event for people, on one line. */
export function eventLine({ created_at_ms, type, id }: SandboxEvent): string {
  return `${new Date(created_at_ms).toISOString()}  ${type}  ${id}`;
}

/** Prints an event as a line for people, or whole as JSON. */
export function printEvent(event: SandboxEvent, { json }: { json?: boolean }): void {
  console.log(json === true ? JSON.stringify(event) : eventLine(event));
}
