import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type {
  SandboxClock,
  SandboxUpcoming,
  SandboxUpcomingEntry,
  SetSandboxClockRequest,
} from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime, durationText, markText } from '../texts.ts';

const steps: readonly [string, number][] = [
  ['1 second', 1000],
  ['1 minute', 60_000],
  ['1 hour', 3_600_000],
  ['1 day', 86_400_000],
  ['1 week', 604_800_000],
];

/** The clock of the sandbox. All times except the duration of requests come from it. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('getClock', {}, signal), []);
  const clock = value.value;
  const upcoming = useLoaded((signal) => control('listUpcoming', { query: {} }, signal), []);
  const note = useSignal('');
  useEffect(() => {
    if (clock === undefined || clock.frozen) return;
    const timer = setInterval(() => {
      reload();
      upcoming.reload();
    }, 1000);
    return () => clearInterval(timer);
  }, [clock?.frozen]);
  const set = async (body: SetSandboxClockRequest): Promise<void> => {
    try {
      value.value = await control('setClock', { body });
      note.value = '';
      upcoming.reload();
    } catch (cause) {
      note.value = (cause as Error).message;
    }
  };
  return (
    <div class="page">
      <h1>Clock</h1>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {clock !== undefined && <Controls clock={clock} set={set} />}
      {note.value !== '' && <p role="alert">{note.value}</p>}
      {upcoming.error.value !== '' && <p role="alert">{upcoming.error.value}</p>}
      {upcoming.value.value !== undefined && (
        <Upcoming upcoming={upcoming.value.value} set={set} reload={upcoming.reload} />
      )}
    </div>
  );
}

interface UpcomingProps {
  readonly upcoming: SandboxUpcoming;
  readonly set: (body: SetSandboxClockRequest) => Promise<void>;
  readonly reload: () => void;
}

/** The upcoming events. A button next to each advances the clock to it. */
function Upcoming({ upcoming: { now_ms: nowMs, data }, set, reload }: UpcomingProps) {
  const [next] = data;
  return (
    <section aria-label="What happens next">
      <h2>What happens next</h2>
      <p class="actions">
        {next !== undefined && (
          <button type="button" class="main" onClick={() => set({ now_ms: next.at_ms })}>
            Go to the next
          </button>
        )}
        <button type="button" onClick={reload}>
          Read again
        </button>
      </p>
      {next === undefined && <p class="empty">Nothing is planned.</p>}
      {next !== undefined && <Slider nowMs={nowMs} marks={data} set={set} />}
      <ol class="marks">
        {data.map((entry) => (
          <li key={`${entry.at_ms} ${entry.kind} ${entry.resource_id}`}>
            <button
              type="button"
              aria-label={`Go to ${dateAndTime(entry.at_ms)} UTC`}
              onClick={() => set({ now_ms: entry.at_ms })}
            >
              in {durationText(entry.at_ms - nowMs)}
            </button>{' '}
            {entry.kind.replaceAll('_', ' ')}: <Resource entry={entry} />
          </li>
        ))}
      </ol>
    </section>
  );
}

interface SliderProps {
  readonly nowMs: number;
  readonly marks: readonly SandboxUpcomingEntry[];
  readonly set: UpcomingProps['set'];
}

/**
 * A slider that selects a time. Its positions are the current time and the times of upcoming events, which may be
 * seconds or days apart.
 */
function Slider({ nowMs, marks, set }: SliderProps) {
  const position = useSignal(0);
  const chosen = marks[Math.min(position.value, marks.length) - 1];
  const text = chosen === undefined ? 'now' : markText(chosen, nowMs);
  const go = async (): Promise<void> => {
    if (chosen === undefined) return;
    position.value = 0;
    await set({ now_ms: chosen.at_ms });
  };
  return (
    <div>
      <label class="slider">
        Go to
        <input
          type="range"
          min={0}
          max={marks.length}
          step={1}
          list="due"
          value={position.value}
          aria-valuetext={text}
          onInput={({ currentTarget }) => {
            position.value = Number(currentTarget.value);
          }}
        />
      </label>
      <datalist id="due">
        {marks.map((_, index) => (
          <option key={index} value={index + 1} />
        ))}
      </datalist>
      <p class="actions">
        <button type="button" disabled={chosen === undefined} onClick={go}>
          Go there
        </button>
        <output>{text}</output>
      </p>
    </div>
  );
}

/** The pages that show the upcoming events of each kind. */
const pageOf: Partial<Record<SandboxUpcomingEntry['kind'], string>> = {
  intent_expires: 'intents',
  transaction_check: 'transactions',
  webhook_attempt: 'events',
};

function Resource({ entry: { kind, resource_id: id } }: { readonly entry: SandboxUpcomingEntry }) {
  const page = pageOf[kind];
  return page === undefined ? <code>{id}</code> : <a href={hrefOf(page, [id])}>{id}</a>;
}

interface ControlsProps {
  readonly clock: SandboxClock;
  readonly set: (body: SetSandboxClockRequest) => Promise<void>;
}

function Controls({ clock, set }: ControlsProps) {
  return (
    <>
      <p class="clock">
        {dateAndTime(clock.now_ms)} UTC, {clock.frozen ? 'frozen' : 'running'}
      </p>
      <p class="actions">
        <button type="button" class="main" onClick={() => set({ frozen: !clock.frozen })}>
          {clock.frozen ? 'Let it run' : 'Freeze'}
        </button>
      </p>
      <h2>Advance</h2>
      <p>Everything that becomes due is done before the clock answers.</p>
      <p class="actions">
        {steps.map(([title, ms]) => (
          <button type="button" key={title} onClick={() => set({ advance_ms: ms })}>
            {title}
          </button>
        ))}
      </p>
      <SetTime clock={clock} set={set} />
    </>
  );
}

function SetTime({ clock, set }: ControlsProps) {
  const typed = useSignal('');
  const submit = (event: Event): void => {
    event.preventDefault();
    const ms = Date.parse(`${typed.value}Z`);
    if (!Number.isNaN(ms)) void set({ now_ms: ms });
  };
  return (
    <form class="fields" onSubmit={submit}>
      <label>
        Set to (UTC)
        <input
          type="datetime-local"
          step={1}
          value={typed.value || new Date(clock.now_ms).toISOString().slice(0, 19)}
          onInput={({ currentTarget }) => {
            typed.value = currentTarget.value;
          }}
        />
      </label>
      <button type="submit">Set</button>
    </form>
  );
}
