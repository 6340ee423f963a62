import { clock } from '../clock-feed.ts';
import { dateAndTime, durationText } from '../texts.ts';

/** Describes the distance between two times, such as `now`, `12 s ago` or `in 3 d`. */
function agoText(ms: number, nowMs: number): string {
  const passed = nowMs - ms;
  if (Math.abs(passed) < 1000) return 'now';
  const seconds = Math.trunc(Math.abs(passed) / 1000);
  const text = seconds < 2 ? `${seconds} s` : durationText(seconds * 1000);
  return passed < 0 ? `in ${text}` : `${text} ago`;
}

/** A time of the sandbox's clock, relative to it, with the exact time on hover. */
export function Age({ ms }: { readonly ms: number }) {
  const nowMs = clock.value?.now_ms ?? ms;
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${dateAndTime(ms)} UTC of the sandbox's clock`}>
      {agoText(ms, nowMs)}
    </time>
  );
}

/** A time of the machine, relative to now, with the exact time of both clocks on hover. */
export function MachineAge({ ms, sandboxMs }: { readonly ms: number; readonly sandboxMs: number }) {
  // The sandbox's clock is read every two seconds. Using it here redraws the ages.
  void clock.value;
  return (
    <time
      dateTime={new Date(ms).toISOString()}
      title={`${dateAndTime(ms)} UTC, ${dateAndTime(sandboxMs)} UTC of the sandbox's clock`}
    >
      {agoText(ms, Math.max(Date.now(), ms))}
    </time>
  );
}

/** The exact time, and how long ago it was. */
export function ExactTime({ ms }: { readonly ms: number }) {
  return (
    <>
      {dateAndTime(ms)} UTC{' '}
      <span class="quiet whole">
        (<Age ms={ms} />)
      </span>
    </>
  );
}
