import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { SandboxClock, SetSandboxClockRequest } from '../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { dateAndTime } from '../parts/time-text.ts';
import { useLoaded } from '../parts/use-loaded.tsx';

const steps: readonly [string, number][] = [
  ['1 second', 1000],
  ['1 minute', 60_000],
  ['1 hour', 3_600_000],
  ['1 day', 86_400_000],
  ['1 week', 604_800_000],
];

/** The clock of the sandbox, by which everything but the duration of requests is timed. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('getClock', {}, signal), []);
  const clock = value.value;
  const note = useSignal('');
  useEffect(() => {
    if (clock === undefined || clock.frozen) return;
    const timer = setInterval(reload, 1000);
    return () => clearInterval(timer);
  }, [clock?.frozen]);
  const set = async (body: SetSandboxClockRequest): Promise<void> => {
    try {
      value.value = await control('setClock', { body });
      note.value = '';
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
    </div>
  );
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
