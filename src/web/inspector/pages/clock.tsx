import { useSignal } from '@preact/signals';
import { Pause, Play } from 'lucide';
import { useEffect } from 'preact/hooks';
import type {
  SandboxClock,
  SandboxUpcoming,
  SandboxUpcomingEntry,
  SetSandboxClockRequest,
} from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { inWords, shortened } from '../names.ts';
import { Icon } from '../parts/icon.tsx';
import { Label } from '../parts/label.tsx';
import { Failure } from '../parts/states.tsx';
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

/** The clock of the sandbox, with controls that set it, and the upcoming events. */
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
      <div class="title">
        <h1>Clock</h1>
        <Label tone={clock?.frozen === true ? 'info' : 'good'}>
          {clock?.frozen === true ? 'frozen' : 'running'}
        </Label>
      </div>
      <Failure message={error.value || note.value || upcoming.error.value} />
      {clock !== undefined && <Controls clock={clock} set={set} />}
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
    <section class="card" aria-label="What happens next">
      <h2>What happens next</h2>
      <div class="actions">
        {next !== undefined && (
          <button type="button" class="main" onClick={() => set({ now_ms: next.at_ms })}>
            Go to the next
          </button>
        )}
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </div>
      {next === undefined && <p class="empty">Nothing is planned.</p>}
      {next !== undefined && <Slider nowMs={nowMs} marks={data} set={set} />}
      <ol class="lines">
        {data.map((entry) => (
          <li key={`${entry.at_ms} ${entry.kind} ${entry.resource_id}`}>
            <div>
              {inWords(entry.kind)} <Resource entry={entry} />
              <span class="when">
                <time title={`${dateAndTime(entry.at_ms)} UTC`}>in {durationText(entry.at_ms - nowMs)}</time>{' '}
                <button
                  type="button"
                  class="plain"
                  aria-label={`Go there, ${dateAndTime(entry.at_ms)} UTC`}
                  onClick={() => set({ now_ms: entry.at_ms })}
                >
                  Go there
                </button>
              </span>
            </div>
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
    <div class="clock-line">
      <Line marks={marks} nowMs={nowMs} chosen={position.value} />
      <label class="slider">
        <span class="hidden">Go to</span>
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
      <div class="actions">
        <button type="button" class="main" disabled={chosen === undefined} onClick={go}>
          Go there
        </button>
        <output>{text}</output>
      </div>
    </div>
  );
}

const MAX_LABELS = 6;

interface LineProps {
  readonly nowMs: number;
  readonly marks: readonly SandboxUpcomingEntry[];
  /** The chosen position: 0 for now, then one for each mark. */
  readonly chosen: number;
}

/** The line of the clock from now to the last mark. The slider lies on it, so the line can be dragged. */
function Line({ nowMs, marks, chosen }: LineProps) {
  const every = Math.ceil(marks.length / MAX_LABELS);
  return (
    <ol class="line" aria-hidden="true">
      <li class={chosen === 0 ? 'chosen' : 'passed'}>now</li>
      {marks.map((mark, index) => (
        <li
          key={`${mark.at_ms} ${mark.kind} ${mark.resource_id}`}
          class={index + 1 === chosen ? 'chosen' : index + 1 < chosen ? 'passed' : ''}
          title={`${inWords(mark.kind)}, ${dateAndTime(mark.at_ms)} UTC`}
        >
          {(index % every === 0 || index + 1 === chosen) && (
            <span>
              {durationText(mark.at_ms - nowMs)}
              <small>{inWords(mark.kind)}</small>
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

/** The pages that show the upcoming events of each kind. */
const pageOf: Partial<Record<SandboxUpcomingEntry['kind'], string>> = {
  intent_expires: 'intents',
  transaction_check: 'transactions',
  webhook_attempt: 'events',
  total_decreases: 'aggregations',
  action_check: 'actions',
};

function Resource({ entry: { kind, resource_id: id } }: { readonly entry: SandboxUpcomingEntry }) {
  const page = pageOf[kind];
  return page === undefined ? <code>{shortened(id)}</code> : <a href={hrefOf(page, [id])}>{shortened(id)}</a>;
}

interface ControlsProps {
  readonly clock: SandboxClock;
  readonly set: (body: SetSandboxClockRequest) => Promise<void>;
}

function Controls({ clock, set }: ControlsProps) {
  return (
    <section class="card" aria-label="Time">
      <div class="clock">
        {dateAndTime(clock.now_ms)} UTC
        <span class="hidden">, {clock.frozen ? 'frozen' : 'running'}</span>
      </div>
      <div class="actions">
        <button type="button" onClick={() => set({ frozen: !clock.frozen })}>
          <Icon of={clock.frozen ? Play : Pause} /> {clock.frozen ? 'Let it run' : 'Freeze'}
        </button>
        <button type="button" onClick={() => set({ now_ms: Date.now() })}>
          Set to this machine's time
        </button>
      </div>
      <h3>Advance by</h3>
      <div class="actions">
        {steps.map(([title, ms]) => (
          <button type="button" key={title} onClick={() => set({ advance_ms: ms })}>
            {title}
          </button>
        ))}
      </div>
      <p class="quiet small">Everything that becomes due is done before the clock answers.</p>
      <SetTime clock={clock} set={set} />
    </section>
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
