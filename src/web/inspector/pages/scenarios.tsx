import { useSignal } from '@preact/signals';
import type {
  SandboxScenario,
  SandboxScenarioRun,
  SandboxScenarioStep,
} from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { isRefusal } from '../parts/sent-result.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';
import { resourceHref } from '../texts.ts';

/** The failure scenarios by name, and the steps of the ones that were run. */
export function Page() {
  const { value, error } = useLoaded((signal) => control('listScenarios', {}, signal), []);
  return (
    <div class="page">
      <h1>Scenarios</h1>
      <p>
        A scenario creates what it needs and leads it to an unhappy end. Everything stays, so that a client
        can continue from there. Some advance the clock.
      </p>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value?.data.map((scenario) => (
        <Scenario key={scenario.name} scenario={scenario} />
      ))}
    </div>
  );
}

function Scenario({ scenario: { name, summary } }: { readonly scenario: SandboxScenario }) {
  const done = useSignal<SandboxScenarioRun | undefined>(undefined);
  const failure = useSignal('');
  const isRunning = useSignal(false);
  const run = async (): Promise<void> => {
    isRunning.value = true;
    failure.value = '';
    try {
      done.value = await control('runScenario', { path: { name } });
    } catch (cause) {
      done.value = undefined;
      failure.value = (cause as Error).message;
    } finally {
      isRunning.value = false;
    }
  };
  return (
    <section class="card" aria-label={`Scenario ${name}`}>
      <h2>{name}</h2>
      <p>{summary}</p>
      <p class="actions">
        <button type="button" aria-label={`Run ${name}`} disabled={isRunning.value} onClick={run}>
          Run
        </button>
      </p>
      <div role="status">
        {failure.value !== '' && <p class="bad">{failure.value}</p>}
        {done.value !== undefined && <Happened run={done.value} />}
      </div>
    </section>
  );
}

function Happened({ run: { resources, steps, try_next: commands } }: { readonly run: SandboxScenarioRun }) {
  return (
    <>
      <h3>What happened</h3>
      <ol>
        {steps.map((step, index) => (
          <li key={index}>
            <Step step={step} />
          </li>
        ))}
      </ol>
      <h3>What was created</h3>
      <ul>
        {resources.map((resource) => {
          const href = resourceHref(resource);
          return (
            <li key={resource.id}>
              {resource.type.replaceAll('_', ' ')}{' '}
              {href === undefined ? <code>{resource.id}</code> : <a href={href}>{resource.id}</a>}
            </li>
          );
        })}
      </ul>
      {commands.length > 0 && <h3>Try next</h3>}
      <ul>
        {commands.map((command) => (
          <li key={command}>
            <code>{command}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

function Step({ step }: { readonly step: SandboxScenarioStep }) {
  const { summary, request_id: requestId, operation, status, code } = step;
  return (
    <>
      {summary}
      {status !== null && (
        <>
          {': '}
          <span class={isRefusal(status) ? 'bad' : 'good'}>
            {status} {code}
          </span>
        </>
      )}{' '}
      {requestId !== null && <a href={hrefOf('requests', [requestId])}>{operation ?? 'the request'}</a>}
    </>
  );
}
