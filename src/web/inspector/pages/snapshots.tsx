import { useSignal } from '@preact/signals';
import { Camera, Upload as UploadIcon } from 'lucide';
import type { SandboxSnapshot } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Icon } from '../parts/icon.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { dateAndTime, nameOfFile, savedText, sizeText } from '../texts.ts';

/** The named snapshots of the sandbox's whole state, and a button that returns to the state after the start. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('listSnapshots', {}, signal), []);
  const note = useSignal('');
  const isRunning = useSignal(false);
  const change = async (run: () => Promise<string>): Promise<void> => {
    isRunning.value = true;
    try {
      note.value = await run();
      reload();
    } catch (cause) {
      note.value = (cause as Error).message;
    } finally {
      isRunning.value = false;
    }
  };
  const reset = () =>
    change(async () => {
      const { now_ms: nowMs } = await control('resetSandbox', {});
      return `the sandbox was reset; its clock shows ${dateAndTime(nowMs)} UTC`;
    });
  const snapshots = value.value?.data;
  return (
    <div class="page">
      <div class="title">
        <h1>Snapshots</h1>
      </div>
      <p class="quiet">A snapshot is the whole state of the sandbox: its data, simulated chains and clock.</p>
      <Save change={change} isRunning={isRunning.value} />
      <Upload change={change} isRunning={isRunning.value} />
      <p role="status">{note.value}</p>
      <Failure message={error.value} retry={reload} />
      {snapshots?.length === 0 && (
        <Empty icon={Camera} title="No snapshots yet">
          <span>Save the state before an experiment, and load it afterwards.</span>
        </Empty>
      )}
      {snapshots !== undefined && snapshots.length > 0 && (
        <Snapshots snapshots={snapshots} change={change} isRunning={isRunning.value} />
      )}
      <h2>Reset</h2>
      <p>
        Deletes everything created since the start. Snapshots and the recorded requests are kept, fault rules
        are not.
      </p>
      <div class="actions">
        <ConfirmButton question="Reset the sandbox?" disabled={isRunning.value} onConfirm={reset}>
          Reset
        </ConfirmButton>
      </div>
    </div>
  );
}

interface ChangeProps {
  /** Runs a change, shows its message, and reads the snapshots again. */
  readonly change: (run: () => Promise<string>) => Promise<void>;
  readonly isRunning: boolean;
}

function Save({ change, isRunning }: ChangeProps) {
  const name = useSignal('');
  const save = (submitted: Event): void => {
    submitted.preventDefault();
    void change(async () => {
      const { bytes } = await control('saveSnapshot', { body: { name: name.value.trim() } });
      return `${name.value.trim()} saved, ${sizeText(bytes)}`;
    });
  };
  return (
    <form class="fields" aria-label="Save a snapshot" onSubmit={save}>
      <label>
        Name
        <input
          required
          maxLength={64}
          pattern="[a-z0-9][a-z0-9._\-]*"
          title="Lower-case letters, digits, dots, underscores and hyphens"
          spellcheck={false}
          value={name}
          onInput={({ currentTarget }) => {
            name.value = currentTarget.value;
          }}
        />
      </label>
      <button type="submit" class="main" disabled={isRunning}>
        Save
      </button>
    </form>
  );
}

/** Uploads a snapshot under the name of its file. It is stored, but not loaded. */
function Upload({ change, isRunning }: ChangeProps) {
  const upload = (input: HTMLInputElement): void => {
    const file = input.files?.[0];
    if (file === undefined) return;
    input.value = '';
    void change(async () => {
      const name = nameOfFile(file.name);
      const { bytes } = await control('uploadSnapshot', {
        path: { name },
        body: { content: await readFileBase64(file) },
      });
      return `${name} uploaded, ${sizeText(bytes)}`;
    });
  };
  return (
    <div class="fields">
      <label class="button file">
        <Icon of={UploadIcon} /> Upload a file
        <input
          class="hidden"
          type="file"
          accept=".snapshot"
          disabled={isRunning}
          onChange={({ currentTarget }) => upload(currentTarget)}
        />
      </label>
    </div>
  );
}

interface SnapshotsProps extends ChangeProps {
  readonly snapshots: readonly SandboxSnapshot[];
}

function Snapshots({ snapshots, change, isRunning }: SnapshotsProps) {
  const load = (name: string) =>
    change(async () => {
      const { now_ms: nowMs } = await control('loadSnapshot', { path: { name } });
      return `${name} loaded; the clock shows ${dateAndTime(nowMs)} UTC`;
    });
  const remove = (name: string) =>
    change(async () => {
      await control('deleteSnapshot', { path: { name } });
      return `${name} deleted`;
    });
  const download = (name: string) =>
    change(async () => {
      const { content } = await control('downloadSnapshot', { path: { name } });
      await saveFile(`${name}.snapshot`, content);
      return `${name} downloaded; it contains the keys of all wallets`;
    });
  return (
    <ul class="cards" aria-label="Saved snapshots">
      {snapshots.map((snapshot) => (
        <li class="card" key={snapshot.name}>
          <h2>{snapshot.name}</h2>
          <p class="quiet">
            {sizeText(snapshot.bytes)}, saved {savedText(snapshot)}
            {snapshot.now_ms !== null && `; its clock shows ${dateAndTime(snapshot.now_ms)} UTC`}
          </p>
          <div class="actions">
            <ConfirmButton
              label={`Load ${snapshot.name}`}
              question={`Replace everything by ${snapshot.name}?`}
              disabled={isRunning}
              onConfirm={() => load(snapshot.name)}
            >
              Load
            </ConfirmButton>
            <button
              type="button"
              aria-label={`Download ${snapshot.name}`}
              disabled={isRunning}
              onClick={() => download(snapshot.name)}
            >
              Download
            </button>
            <ConfirmButton
              label={`Delete ${snapshot.name}`}
              question={`Delete ${snapshot.name}?`}
              disabled={isRunning}
              onConfirm={() => remove(snapshot.name)}
            >
              Delete
            </ConfirmButton>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Saves the content of a snapshot, gzip in base64, as a file that `custos sandbox --load` can read. */
async function saveFile(name: string, content: string): Promise<void> {
  const packed = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const address = URL.createObjectURL(await new Response(unpacked).blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

/** Reads the file of a snapshot into the format of the request body. */
async function readFileBase64(file: File): Promise<string> {
  const packed = await new Response(file.stream().pipeThrough(new CompressionStream('gzip'))).blob();
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(packed);
  });
}
