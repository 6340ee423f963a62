import { createPublicKey, verify } from 'node:crypto';
import { operations } from '../../src/generated/operations.ts';
import { naiveRoot } from '../integration/audit/naive-merkle.ts';
import type { Scene } from './scripts.ts';
import { SimulationFailure } from './world.ts';

/*
 * What must be true of the audit log: what was answered has its record, what was refused for lack of authorization has
 * one as well, repeats have none; every row that a request or a job makes is named by a record, and every event; records
 * never change; each checkpoint is the root of RFC 6962 over them, signed.
 */

interface Entry {
  readonly operation: string;
  readonly request_id?: string;
  readonly phase?: string;
  readonly decision: 'allow' | 'deny';
  readonly status?: number;
  readonly changes?: readonly string[];
  readonly ids: Readonly<Record<string, string | readonly string[]>>;
}

/** Tables whose rows are named by the records of what made them. */
const tables = ['wallets', 'users', 'wallet_actions', 'intents', 'cards', 'fiat_deposit_accounts'] as const;

/** Refusals for lack of authorization. */
const isDenial = (status: number, code: string): boolean =>
  status === 401 || status === 403 || code === 'policy_violation';

export interface AuditJudge {
  /** After the tables have changed. */
  afterChange(): void;
  /** After every step. */
  checkAnswers(): void;
  /** When nothing is in progress. */
  atEnd(): void;
  readonly recordCount: number;
}

export function makeAuditJudge({ world }: Scene): AuditJudge {
  const { disk, answers } = world;
  const entries: string[] = [];
  const seenPending = new Set<number>();
  const byRequest = new Map<string, Entry[]>();
  const named = new Set<string>();
  /** Since the step before. */
  const namedNow = new Set<string>();
  const changed = new Set<string>();
  const rows = new Map<string, number>();
  let [judged, checkpointSize, eventSequence] = [0, 0, 0];

  function require(isTrue: boolean, message: () => string): void {
    if (!isTrue) throw new SimulationFailure(`audit log: ${message()}`);
  }

  /** Notes a record as soon as it is committed. Placed in the log it must be the same. */
  function note(text: string): void {
    const entry = JSON.parse(text) as Entry;
    world.note(`record ${text}`);
    const ids = Object.values(entry.ids).flat();
    for (const id of ids) {
      named.add(id);
      namedNow.add(id);
    }
    for (const change of entry.changes ?? []) for (const id of ids) changed.add(`${change} ${id}`);
    if (entry.request_id === undefined) return;
    const known = byRequest.get(entry.request_id);
    if (known === undefined) byRequest.set(entry.request_id, [entry]);
    else known.push(entry);
    const own = (known ?? []).filter(({ phase }) => phase === undefined);
    require(own.length <= 1, () => `the request ${entry.request_id} has ${own.length} records`);
  }

  const pendingTexts = new Map<number, string>();
  function readRecords(): void {
    const pending = disk.all<{ id: number; entry: string }>(
      'select id, entry from audit_pending order by id',
    );
    const placed = disk.all<{ leaf: number; id: number; entry: string }>(
      'select leaf_index as leaf, pending_id as id, entry from audit_records where leaf_index >= ? order by leaf_index',
      entries.length,
    );
    for (const { leaf, id, entry } of placed) {
      require(leaf === entries.length, () => `record ${leaf} follows record ${entries.length - 1}`);
      require(!seenPending.has(id) || pendingTexts.has(id), () => `the record ${id} is in the log twice`);
      const before = pendingTexts.get(id);
      require(before === undefined || before === entry, () => `the record ${id} has changed: ${entry}`);
      if (before === undefined) note(entry);
      seenPending.add(id);
      pendingTexts.delete(id);
      entries.push(entry);
    }
    const left = new Set(pending.map(({ id }) => id));
    for (const [id, entry] of pendingTexts) require(left.has(id), () => `the record ${id} is lost: ${entry}`);
    for (const { id, entry } of pending) {
      if (seenPending.has(id)) continue;
      note(entry);
      seenPending.add(id);
      pendingTexts.set(id, entry);
    }
  }

  function checkAnswers(): void {
    for (; judged < answers.length; judged += 1) {
      const { id, requestId, status, headers, text } = answers[judged]!;
      const records = (byRequest.get(requestId) ?? []).filter(({ phase }) => phase === undefined);
      const decisions = records.map(({ decision }) => decision).join();
      const isReplay = headers['idempotent-replayed'] === 'true';
      const { method, isReadOnly } = operations[id];
      const isRecorded = method !== 'GET' && isReadOnly !== true;
      const code = status < 400 ? '' : ((JSON.parse(text) as { code?: string }).code ?? '');
      const expected =
        status >= 500
          ? undefined
          : status < 400
            ? isRecorded && !isReplay
              ? 'allow'
              : ''
            : isDenial(status, code) && !isReplay
              ? 'deny'
              : '';
      require(expected === undefined || decisions === expected, () =>
        `${id} answered ${status} ${code} and has the records \`${decisions}\``);
    }
  }

  /** What an intent made is named by the intent, which the record of its last signature names. */
  function isNamed(id: string, names: ReadonlySet<string> = named): boolean {
    if (names.has(id)) return true;
    const makers = disk.all<{ id: string }>(
      'select id from intents where awaited_action_id = ? or instr(action_result, ?) > 0',
      id,
      id,
    );
    return makers.some((intent) => names.has(intent.id));
  }

  /** Every new row, and every event, is named by a record. */
  function checkEffects(): void {
    for (const table of tables) {
      const last = rows.get(table) ?? 0;
      const found = disk.all<{ row: number; id: string }>(
        `select rowid as row, id from ${table} where rowid > ? order by rowid`,
        last,
      );
      for (const { row, id } of found) {
        require(isNamed(id), () => `no record names ${id} of ${table}`);
        rows.set(table, row);
      }
    }
    const events = disk.all<{ sequence: number; type: string; id: string | null }>(
      'select sequence, type, resource_id as id from outbox_events where sequence > ? order by sequence',
      eventSequence,
    );
    for (const { sequence, type, id } of events) {
      eventSequence = sequence;
      if (id === null) continue;
      require(changed.has(`${type} ${id}`) || isNamed(id, namedNow), () =>
        `no record names ${type} of ${id}`);
    }
  }

  /** What records say was made is there. */
  function checkMade(): void {
    const made = {
      createWallet: 'wallets',
      createUser: 'users',
      transferFromWallet: 'wallet_actions',
    } as const;
    for (const records of byRequest.values())
      for (const { operation, decision, ids } of records) {
        const table = made[operation as keyof typeof made];
        if (table === undefined || decision !== 'allow' || typeof ids.id !== 'string') continue;
        const [row] = disk.all(`select id from ${table} where id = ?`, ids.id);
        require(row !== undefined, () => `${operation} recorded ${ids.id}, which does not exist`);
      }
  }

  function checkCheckpoints(): void {
    const found = disk.all<{ size: number; root: string }>(
      'select size, root from audit_checkpoints where size > ? order by size',
      checkpointSize,
    );
    for (const { size, root } of found) {
      checkpointSize = size;
      const own = naiveRoot(entries.slice(0, size).map((entry) => Buffer.from(entry))).toString('base64');
      require(root === own, () => `the root of ${size} records is ${root}, expected ${own}`);
    }
    const placed = entries.length;
    require(placed === checkpointSize, () =>
      `${placed} records are placed, ${checkpointSize} have a checkpoint`);
  }

  function checkSignature(): void {
    const [newest] = disk.all<{ size: number; root: string; note: string | null }>(
      'select size, root, note from audit_checkpoints order by size desc limit 1',
    );
    const [key] = disk.all<{ origin: string; publicKey: string }>(
      "select origin, public_key as publicKey from audit_keys where id = 'checkpoints'",
    );
    require(newest?.note != null && key !== undefined, () => 'the newest checkpoint is not signed');
    // C2SP signed-note: the text, an empty line, and `— <name> base64(<key id> || <signature>)`.
    const [text = '', signatures = ''] = newest!.note!.split('\n\n');
    require(text === `${key!.origin}\n${newest!.size}\n${newest!.root}`, () => `the note says ${text}`);
    const signature = Buffer.from(signatures.trim().split(' ')[2] ?? '', 'base64').subarray(4);
    const raw = Buffer.from(key!.publicKey, 'base64').subarray(-32);
    const publicKey = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') },
      format: 'jwk',
    });
    const isSigned = verify(undefined, Buffer.from(`${text}\n`), publicKey, signature);
    require(isSigned, () => 'the signature of the newest checkpoint is wrong');
  }

  return {
    get recordCount() {
      return entries.length;
    },
    checkAnswers,
    afterChange() {
      namedNow.clear();
      readRecords();
      checkEffects();
      checkCheckpoints();
    },
    atEnd() {
      readRecords();
      checkMade();
      const stored = disk.all<{ entry: string }>('select entry from audit_records order by leaf_index');
      require(stored.length === entries.length &&
        stored.every(({ entry }, at) => entry === entries[at]), () => 'records of the log have changed');
      checkSignature();
    },
  };
}
