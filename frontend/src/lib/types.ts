/** What the API answers. The names are those of `deemster.report.v1` and `deemster.comparison.v1`. */

export type Pair = [number, number];
export type Json = unknown;

export interface Session {
  version: string;
  mode: "server" | "export";
  author: string | null;
  reads_only: boolean;
}

export interface RunRow {
  id: string;
  kind: string;
  experiment: string | null;
  suite: string | null;
  dataset: string | null;
  label: string | null;
  target: string | null;
  status: string;
  reason: string | null;
  started_at: string | null;
  finished_at: string | null;
  duration_s: number | null;
  samples: number | null;
  repetitions: number | null;
  done: number | null;
  total: number | null;
  macro_f1: number | null;
  macro_f1_interval: Pair | null;
  pass_rate: number | null;
  pass_rate_interval: Pair | null;
  metrics: Record<string, { pass_rate: number | null; interval: Pair | null; mean: number | null }> | null;
  gate: string | null;
  cost_usd: number | null;
  partial: boolean;
  is_baseline: boolean;
}

export interface RunList {
  total: number;
  /** The runs of an experiment are one line. */
  lines: number;
  runs: RunRow[];
}

export interface TrendRun {
  id: string;
  label: string | null;
  started_at: string;
  macro_f1: number | null;
  macro_f1_interval: Pair | null;
  metrics: Record<string, { pass_rate: number | null; interval: Pair | null }>;
  is_baseline: boolean;
}

export interface Trends {
  suites: { suite: string | null; label: string | null; dataset: string | null; runs: TrendRun[] }[];
}

export interface Figures {
  n: number;
  n_scored: number;
  n_unscored: number;
  n_not_run: number;
  n_passed: number;
  n_not_applicable?: number;
  unscored_by_cause: Record<string, number>;
  mean: number | null;
  stdev: number | null;
  min: number | null;
  p5: number | null;
  p50: number | null;
  p95: number | null;
  max: number | null;
  mean_interval: Pair | null;
  pass_rate: number | null;
  pass_rate_worst: number | null;
  pass_rate_best: number | null;
  pass_rate_interval: Pair | null;
  pass_rate_corrected: { value: number; low: number; high: number } | null;
}

export interface MetricFigures extends Figures {
  spec: string;
  family: string;
  threshold: number | null;
  higher_is_better: boolean;
  criteria: Json;
}

export interface Cohort {
  name: string | null;
  label: string;
  samples: number;
  macro_f1: number | null;
  macro_f1_interval: Pair | null;
  pass_rate: number | null;
  pass_rate_interval: Pair | null;
  metrics: Record<string, Figures>;
}

export interface Check {
  name: string;
  observed: number | null;
  low: number | null;
  high: number | null;
  required: number | null;
  status: string;
  because: string;
}

export interface Gate {
  decision: string;
  mode: string;
  checks: Check[];
}

export interface AttackFigures {
  name: string;
  samples: number;
  executions: number;
  successes: number;
  undecided: number;
  attack_success_rate: number | null;
  interval: Pair | null;
  worst_severity: string | null;
}

export interface AttackSummary {
  metrics: string[];
  overall: AttackFigures;
  categories: AttackFigures[];
  frameworks: { name: string; items: AttackFigures[] }[];
  severities: AttackFigures[];
  mutators: AttackFigures[];
}

export interface Usage {
  calls: number;
  cached_calls: number;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  total_tokens: number | null;
  latency_ms: { count: number; mean: number; p50: number; p95: number; max: number } | null;
}

export interface RunReport {
  kind: string;
  experiment: string | null;
  label: string | null;
  target: string | null;
  is_baseline: boolean;
  status: string;
  done: number | null;
  total: number | null;
  why_no_report: string | null;
  compare_with: { id: string; is_baseline: boolean } | null;
  tags: { name: string; samples: number }[];
  metadata_keys: { key: string; values: string[] }[];
  causes: string[];
  run: {
    id: string;
    suite: string | null;
    status: string;
    reason: string | null;
    started_at: string;
    finished_at: string | null;
    duration_s: number | null;
    seed: number | null;
    models?: Record<string, { model?: string }> | null;
  };
  dataset: { name: string; fingerprint: string | null };
  totals: Record<string, number>;
  macro_f1: number | null;
  macro_f1_interval: Pair | null;
  pass_rate: number | null;
  pass_rate_interval: Pair | null;
  metric_order: string[];
  metrics: Record<string, MetricFigures>;
  panels?: Record<string, { n: number; n_incomplete: number; quorum: number | null }>;
  histograms: Record<string, { low: number; high: number; count: number }[]>;
  cohorts: Cohort[];
  aggregate: { aggregator: string; success_rate: number | null; interval: Pair | null; mean_score: number | null; samples: number } | null;
  precision: {
    within_sample_variance: number | null;
    resolution: number | null;
    target_delta: number;
    resolvable: boolean;
    required_repetitions: number | null;
    unstable: number;
  } | null;
  failures: Record<string, number> | null;
  usage: { target: Usage; scoring: Usage; total: Usage; by_metric: Record<string, Usage> } | null;
  cost: {
    total_usd: number | null;
    complete: boolean;
    calls: number;
    unpriced_calls: number;
    models: { model: string; calls: number; prompt_tokens: number | null; completion_tokens: number | null; cost_usd: number | null }[];
  } | null;
  budget: { limit_usd: number | null; limit_tokens: number | null; spent_usd: number | null; spent_tokens: number | null; halted: boolean } | null;
  gate: Gate | null;
  adversarial: AttackSummary | null;
  grading?: {
    n: number;
    n_scored: number;
    n_failed: number;
    mean_score: number | null;
    mean_score_interval: Pair | null;
    mean_agreement: number | null;
    criteria: Record<string, { n_judged: number; n_abstained: number; n_failed: number; mean: number | null; mean_interval: Pair | null; mean_agreement: number | null }>;
    judges: { id: string; model: string | null; votes: number; failed: number; mean_score: number | null; cost_usd: number | null }[];
  } | null;
  criteria?: Record<string, { requirement: string | null; kind: string }>;
}

export interface Progress {
  status: string;
  reason: string | null;
  done: number;
  total: number | null;
  samples: number | null;
  started_at: string;
  usage: { executions: number; calls: number; cached_calls: number; tokens: number | null; cost_usd: number | null; is_whole_cost: boolean } | null;
}

export interface ScoreCell {
  score: number | null;
  passed: number | null;
  cause: string | null;
  stdev?: number | null;
}

export interface SampleRow {
  position: number;
  id: string;
  tags: string[];
  metadata?: Record<string, Json>;
  scores: Record<string, ScoreCell | null>;
  repetitions: number;
  passed: number | null;
  unstable: boolean;
  latency_ms: number | null;
  output_chars: number | null;
  preview: { input: string | null; output: string | null; expected: string | null };
}

export interface SamplePage {
  total: number;
  matched: number;
  offset: number;
  rows: SampleRow[];
}

export interface Mark {
  score?: number | null;
  success?: boolean;
  threshold?: number | null;
  rubric_score?: number | null;
  details?: Record<string, Json>;
  usage?: (Partial<Usage> & { cost_usd?: number | null; model?: string | null }) | null;
  unscored?: { cause: string; message: string | null };
}

export interface ToolCall {
  name: string;
  arguments: Json;
  result: Json;
  error: string | null;
  duration_ms: number | null;
}

export interface Trajectory {
  tool_calls?: ToolCall[];
  steps?: number | null;
  finish_reason?: string | null;
  pending_approvals?: number | null;
  approvals?: string[];
}

export interface VoteRow {
  role?: string;
  sample?: number;
  score?: number | null;
  verdict?: Json;
  reason?: string | null;
  [name: string]: Json;
}

export interface JudgeCall {
  role?: string;
  model?: string | null;
  messages: { role: string; content: Json }[] | null;
  reply: Json;
  failure?: Json;
}

export interface Execution {
  repetition: number;
  output: string | null;
  output_cut?: boolean;
  retrieved: Json[] | null;
  trajectory: Trajectory | null;
  failure: { message: string | null; traceback?: string | null } | null;
  latency_ms: number | null;
  model?: string | null;
  usage: Partial<Usage> | null;
  marks: Record<string, Mark>;
  prompts?: Record<string, JudgeCall[]> | null;
  votes?: Record<string, VoteRow[]> | null;
}

export interface MetricFacts {
  family: string;
  threshold: number | null;
  higher_is_better: boolean;
}

export interface SampleDetail {
  position: number;
  id: string;
  row_hash: string | null;
  tags: string[];
  metadata: Record<string, Json> | null;
  input: Json;
  expected_output: Json;
  passed: number | null;
  repetitions: number;
  interval: Pair | null;
  unstable: boolean;
  metric_order: string[];
  metrics: Record<string, MetricFacts>;
  scores: Record<string, ScoreCell | null>;
  executions: Execution[];
  prompt?: Json;
  prompts_remark: string | null;
  previous: number | null;
  next: number | null;
  place: number | null;
  matched: number;
  other_runs?: OtherRun[];
  grading?: {
    score: number | null;
    unscored?: string | null;
    criteria: { criterion: string; verdict: string | null; value: number | null; agreement: number | null; votes: VoteRow[] }[];
  } | null;
}

export interface OtherRun {
  id: string;
  label: string | null;
  started_at: string;
  position: number;
  output: string | null;
  marks: Record<string, { score: number | null; passed: boolean | null; cause: string | null }[]>;
}

export interface Difference {
  n: number;
  baseline: number | null;
  candidate: number | null;
  difference: number | null;
  interval: Pair | null;
  p_value: number | null;
  better: number;
  equal: number;
  worse: number;
}

export interface RunSide {
  id: string;
  suite: string | null;
  label: string | null;
  target: string | null;
  started_at: string;
  samples: number;
  macro_f1: number | null;
  pass_rate: number | null;
}

export interface Comparison {
  verdict: string;
  baseline: RunSide;
  candidate: RunSide;
  confidence: number;
  samples: { paired: number; added: number; removed: number };
  macro_f1: Difference;
  pass_rate: Difference;
  metrics: Record<string, { pass_rate: Difference; mean: Difference | null; higher_is_better: boolean }>;
  cohorts: { label: string; samples: number; macro_f1: Difference; pass_rate: Difference }[];
  statuses: Record<string, number>;
  macro_f1_origin: Record<string, number> | null;
  warnings: string[];
  not_comparable: Record<string, string>;
  gate: Gate | null;
  judge_change?: { answer: string; metrics: Record<string, MetricJudgeChange>; past_decisions: PastDecision[] } | null;
}

export interface JudgedMark {
  score?: number;
  details?: Record<string, unknown>;
}

export interface JudgeFlip {
  id: string;
  baseline: { marks: Record<string, JudgedMark> } | null;
  candidate: { marks: Record<string, JudgedMark> } | null;
}

export interface PastDecision {
  run: string;
  before: string;
  now: string;
}

export interface MetricJudgeChange {
  changed: string;
  outputs: number;
  pass_rate: Difference;
  mean: Difference;
  cohorts: Record<string, Difference>;
  criteria: Record<string, Difference>;
  only_before: number;
  only_now: number;
  flips: JudgeFlip[];
  agreement: { kappa: number | null; interval: Pair | null; retest_kappa: number | null; retest_interval: Pair | null };
  exchange: { old_mark: number | null; mark: number | null; interval: Pair | null; refused: string | null };
  people: { labels: number; before: number; now: number; closer: "before" | "now" | null } | null;
}

export interface RankedEntry {
  run: RunSide;
  best_rank: number;
  worst_rank: number;
  figures: {
    pass_rate_interval: Pair | null;
    metrics: Record<string, number | null>;
    cost_per_100: number | null;
    latency_p50_ms: number | null;
    failed: number;
    not_run: number;
    unscored: number;
  };
}

/** The second's pass-rate minus the first's, by their places among the runs. */
export interface RankedPair {
  first: number;
  second: number;
  difference: number | null;
  interval: Pair | null;
}

export interface Ranking {
  verdict: string;
  confidence: number;
  interval_confidence: number;
  runs: RankedEntry[];
  pairs: RankedPair[];
}

/** What an experiment shows: `deemster.experiment.v1`, with its sentences. */
export interface ExperimentAnswer {
  verdict: string;
  lines: string[];
  ranking: Ranking;
  missing: { name: string; reason: string }[];
  matrix: {
    row_factor: string;
    column_factor: string;
    rows: string[];
    columns: string[];
    pass_rates: (number | null)[][];
  } | null;
}

export interface CompareRow {
  row_hash: string;
  id: string;
  status: string | null;
  positions: (number | null)[];
  scores: Record<string, (number | null)[]>;
  passed: (number | null)[];
  tags: string[];
  preview: { input: string | null; outputs: (string | null)[] };
}

export interface CompareSamplePage {
  total: number;
  matched: number;
  offset?: number;
  statuses?: Record<string, number>;
  rows: CompareRow[];
}

export interface CompareDetail {
  row_hash: string;
  id: string;
  tags: string[];
  metadata?: Record<string, Json> | null;
  input: Json;
  expected_output: Json;
  status: string | null;
  previous: string | null;
  next: string | null;
  sides: ({ run: RunSide; position: number; executions: Execution[]; prompts_remark?: string | null } | null)[];
}

export interface Points {
  metric: string;
  total: number;
  points: [number, number, string | number][];
}

export interface Agreement {
  available: boolean;
  because?: string;
  source?: string;
  labels?: number;
  next_steps?: string[];
  result?: AgreementResult;
  judge_pairs?: { judge_a: string; judge_b: string; n_samples: number; agreement: number | null; ci: { lower: number; upper: number } | null }[];
}

export interface Reliability {
  judge_id: string;
  scale?: string;
  n_samples: number;
  brier: number | null;
  calibration_error: number | null;
  curve: { lower: number; upper: number; n_samples: number; mean_probability: number | null; observed_share: number | null; ci: { lower: number; upper: number } | null }[];
}

interface Estimate {
  estimate: number | null;
  ci: { lower: number; upper: number } | null;
}

export interface CriterionResult {
  criterion_type: string;
  name: string;
  n_samples: number;
  kappa?: number | null;
  weighted_kappa?: number | null;
  kappa_interpretation?: string | null;
  accuracy?: number | null;
  exact_accuracy?: number | null;
  krippendorff_alpha?: number | null;
  confusion_matrix?: { matrix: number[][]; labels: string[] } | null;
  intervals?: Record<string, Estimate>;
}

export interface AgreementResult {
  verdict?: { answer: string; reasons: string[]; notes: string[] };
  criterion_accuracy: number | null;
  mean_kappa: number | null;
  mean_krippendorff_alpha: number | null;
  n_items: number;
  n_judges: number;
  n_criteria: number;
  n_samples: number;
  per_criterion: CriterionResult[];
  per_judge: Record<string, AgreementResult> | null;
  bootstrap: { accuracy_ci: Pair | null; kappa_ci: Pair | null } | null;
  human: { ceiling_kappa: number | null; n_annotators: number } | null;
  calibration: Reliability[] | null;
  items: { id: string; position?: number | null; difficulty: number | null; dispute: number | null; n_votes: number }[] | null;
  warnings: string[];
  intervals?: Record<string, Estimate>;
}

export interface LabelTask {
  metric: string | null;
  criterion: string | null;
  title: string;
  requirement: string | null;
  options: { value: string; label?: string | null }[];
  minimum: number | null;
  maximum: number | null;
}

export interface LabelDecision {
  metric: string | null;
  criterion: string | null;
  verdict: string | null;
  note: string | null;
  skip_reason: string | null;
}

export interface JudgeVerdict {
  metric: string | null;
  criterion: string | null;
  score: number | null;
  passed: boolean | null;
  verdict: string | null;
  reason: string | null;
}

export interface LabelSample {
  position: number;
  id: string;
  tags: string[];
  metadata: Record<string, Json> | null;
  input: Json;
  expected_output: Json;
  repetition: number;
  output: string | null;
  retrieved: Json[] | null;
  trajectory: Trajectory | null;
  failure: { message: string | null } | null;
  tasks: LabelTask[];
  decided: LabelDecision[];
  revealed: JudgeVerdict[] | null;
  probability: number | null;
}

export interface LabelQueue {
  said: string;
  total: number;
  done: number;
  positions: number[];
  next: { position: number; probability: number | null } | null;
}

export interface LabelOverview {
  authors: { name: string; labels: number }[];
  agreement: { title: string; n: number; statistic: string | null; value: number | null; interval: Pair | null; because: string | null }[];
  needed: { what: string; have: number; more: number | null; because: string | null }[];
}

export interface ExperimentVariant {
  name: string;
  /** What was set of its target, such as the prompt and parameters of a chat model; null where texts are left out. */
  target: Record<string, Json> | null;
  run: RunRow;
}

export interface ExperimentHead {
  suite: string | null;
  dataset: string;
  started_at: string;
  samples: number;
  metrics: string[];
  /** The metrics that ask a judge. */
  judged: string[];
  /** So many characters of a text come with a row. */
  text_limit: number;
  columns: ExperimentVariant[];
}

export interface GridCell {
  position: number;
  passed: number | null;
  repetitions: number;
  scores: Record<string, ScoreCell | null>;
  latency_ms: number | null;
  output: string | null;
  /** What the person who looks said of the output, by metric. */
  labels: Record<string, string | null>;
}

export interface GridRow {
  position: number;
  id: string;
  tags: string[];
  input: string | null;
  expected: string | null;
  cells: (GridCell | null)[];
}

export interface GridPage {
  total: number;
  matched: number;
  offset: number;
  rows: GridRow[];
}
