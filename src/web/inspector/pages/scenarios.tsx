import { useSignal } from '@preact/signals';
import { Play } from 'lucide';
import type {
  SandboxScenario,
  SandboxScenarioRun,
  SandboxScenarioStep,
} from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { toneOfHttp } from '../names.ts';
import { Copy } from '../parts/copy.tsx';
import { Icon } from '../parts/icon.tsx';
import { HttpStatus } from '../parts/label.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';
import { resourceHref } from '../texts.ts';

/** The failure scenarios by name, and the steps of the ones that were run. */
export function Page() {
  const { value, error } = useLoaded((signal) => control('listScenarios', {}, signal), []);
  return (
    <div class="page">
      <div class="title">
        <h1>Scenarios</h1>
      </div>
      <p class="quiet">
        A scenario creates what it needs and leads it to an unhappy end. Everything stays, so that a client
        can continue from there. Some advance the clock.
      </p>
      <Failure message={error.value} />
      {value.value === undefined && error.value === '' && <Skeleton />}
      <div class="cards">
        {value.value?.data.map((scenario) => (
          <Scenario key={scenario.name} scenario={scenario} />
        ))}
      </div>
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
      <div class="actions">
        <button type="button" aria-label={`Run ${name}`} disabled={isRunning.value} onClick={run}>
          <Icon of={Play} /> {isRunning.value ? 'Running…' : 'Run'}
        </button>
      </div>
      <div role="status">
        <Failure message={failure.value} />
        {done.value !== undefined && <Happened run={done.value} />}
      </div>
    </section>
  );
}

function Happened({ run: { resources, steps, try_next: commands } }: { readonly run: SandboxScenarioRun }) {
  return (
    <>
      <h3>What happened</h3>
      <Timeline
        label="What happened"
        steps={steps.map((step) => ({
          title: <Step step={step} />,
          tone: step.status === null ? 'none' : toneOfHttp(step.status),
        }))}
      />
      <h3>What was created</h3>
      <ul class="tree">
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
      <ul class="tree">
        {commands.map((command) => (
          <li key={command}>
            <code>{command}</code> <Copy text={command} what="the command" />
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
          <HttpStatus of={status} /> <span class="quiet">{code}</span>
        </>
      )}{' '}
      {requestId !== null && <a href={hrefOf('requests', [requestId])}>{operation ?? 'the request'}</a>}
    </>
  );
}
