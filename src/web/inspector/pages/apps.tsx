import { useSignal } from '@preact/signals';
import type { SandboxApp } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Failure } from '../parts/states.tsx';
import { Age } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { settingsChange } from '../texts.ts';

const columns: readonly Column<SandboxApp>[] = [
  { title: 'Name', slot: 'lead', cell: ({ name }) => name },
  { title: 'Id', width: 180, slot: 'sub', cell: ({ id }) => <Named id={id} what="the app's id" /> },
  {
    ...{ title: 'Created', width: 90, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at_ms: ms }) => <Age ms={ms} />,
  },
];

/** The apps of the sandbox, and the open app. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('listApps', {}, signal), []);
  return (
    <SearchableList
      page="apps"
      title="Apps"
      nouns={['app', 'apps']}
      searchLabel="id or name"
      rows={value.value?.data}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, name }) => [id, name]}
      detail={(id, app, back) => <AppDetail key={id} id={id} app={app} back={back} onSaved={reload} />}
    />
  );
}

interface DetailProps {
  readonly id: string;
  readonly app: SandboxApp | undefined;
  readonly back: string;
  readonly onSaved: () => void;
}

function AppDetail({ id, app, back, onSaved }: DetailProps) {
  const { value, error } = useLoaded((signal) => readApi('getApp', { path: { app_id: id } }, signal), [id]);
  if (app === undefined) return <DetailPanel what="App" id={id} back={back} title="App" isLoading />;
  return (
    <DetailPanel
      what="App"
      id={id}
      back={back}
      title={app.name}
      tabs={[
        { title: 'Settings', content: () => <JsonTree value={app.settings} label="Settings" /> },
        { title: 'Change', content: () => <SettingsForm key={id} app={app} onSaved={onSaved} /> },
        {
          title: 'What clients see',
          content: () =>
            value.value === undefined ? (
              <p class="empty">The credentials of the sandbox's app do not read it. {error.value}</p>
            ) : (
              <JsonTree value={value.value} label="What clients see" />
            ),
        },
        { title: 'Raw', content: () => <JsonTree value={app} label="App" /> },
      ]}
    />
  );
}

/** The name and the settings of an app, as JSON that can be changed. */
function SettingsForm({ app, onSaved }: { readonly app: SandboxApp; readonly onSaved: () => void }) {
  const name = useSignal(app.name);
  const text = useSignal(JSON.stringify(app.settings, undefined, 2));
  const error = useSignal('');
  const note = useSignal('');
  const save = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    [error.value, note.value] = ['', ''];
    try {
      const after: unknown = JSON.parse(text.value);
      if (typeof after !== 'object' || after === null || Array.isArray(after)) {
        throw new Error('Settings are a JSON object.');
      }
      const settings = settingsChange(app.settings, after as Record<string, unknown>);
      const named = name.value.trim() === app.name ? {} : { name: name.value.trim() };
      const saved = await control('configureApp', { path: { app_id: app.id }, body: { ...named, settings } });
      text.value = JSON.stringify(saved.settings, undefined, 2);
      note.value = 'Saved. Requests use the settings from now on.';
      onSaved();
    } catch (cause) {
      error.value = (cause as Error).message;
    }
  };
  return (
    <form onSubmit={save}>
      <div class="fields">
        <label class="wide">
          Name
          <input required value={name} onInput={({ currentTarget }) => (name.value = currentTarget.value)} />
        </label>
      </div>
      <label class="stack">
        Settings as JSON
        <textarea
          rows={16}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      </label>
      <p class="quiet small">
        A setting that you delete here returns to its default. The{' '}
        <a href="/docs/reference/control-plane#configureapp">reference</a> lists them.
      </p>
      <p class="actions">
        <button type="submit" class="main">
          Save
        </button>
      </p>
      <Failure message={error.value} />
      <p role="status">{note.value}</p>
    </form>
  );
}
