/** The API's resources under the names that the dashboard uses. */
import type { components as Frames } from './frames.gen';
import type { components } from './rest.gen';

type Schemas = components['schemas'];

export type Answer = Schemas['AnswerOut'];
export type ApiKey = Schemas['KeyOut'];
export type Column = Schemas['Column'];
export type Demo = Schemas['DemoOut'];
export type Diagnostics = Schemas['Diagnostics'];
export type Diff = Schemas['Diff'];
export type Dropped = Schemas['Dropped'];
export type Draft = Schemas['Draft'];
export type Event = Schemas['EventOut'];
export type Explanation = Schemas['Explanation'];
export type FileFormat = NonNullable<Schemas['FileOut']['format']>;
export type Generator = Schemas['GeneratorOut'];
export type Job = Schemas['JobOut'];
export type JobChange = Schemas['JobChange'];
export type Machine = Schemas['MachineOut'];
export type Me = Schemas['Me'];
export type NewApiKey = Schemas['KeyCreated'];
export type Operator = Schemas['OperatorOut'];
export type Place = Schemas['Place'];
export type Point = Schemas['Point'];
export type Preview = Schemas['PreviewOut'];
export type ProblemDocument = Schemas['ProblemDocument'];
export type QueryIn = Schemas['QueryIn'];
export type RejectedCount = Schemas['RejectedCount'];
export type RejectedRow = Schemas['RejectedRow'];
export type Relation = Schemas['RelationOut'];
export type RelationIn = Schemas['RelationIn'];
export type RelationInJob = Schemas['RelationInJob'];
export type Revision = Schemas['Revision'];
export type Role = Me['role'];
export type Sample = Schemas['SampleOut'];
export type SavedQuery = Schemas['SavedQueryOut'];
export type Snapshot = Schemas['SnapshotOut'];
export type Spec = Schemas['StreamOut']['spec'];
export type SpecField = keyof Schemas['StreamIn']['spec'];
export type Stream = Schemas['StreamOut'];
export type StreamIn = Schemas['StreamIn'];
export type Upload = Schemas['UploadOut'];
export type User = Schemas['UserOut'];
export type UserChange = Schemas['UserChange'];

type FrameSchemas = Frames['schemas'];

export type ClientFrame = FrameSchemas['ConnectionInit'] | FrameSchemas['Subscribe'] | FrameSchemas['ClientComplete'];

/** A frame as it comes: `type` is optional in the description, because it has a default, and always there. */
type Sent<Frame> = Frame extends { type?: infer Type } ? Frame & { type: NonNullable<Type> } : never;
export type ServerFrame = Sent<
  | FrameSchemas['ConnectionAck']
  | FrameSchemas['SchemaFrame']
  | FrameSchemas['NextFrame']
  | FrameSchemas['ProgressFrame']
  | FrameSchemas['ErrorFrame']
  | FrameSchemas['CompleteFrame']
  | FrameSchemas['Pong']
>;
export type Completion = FrameSchemas['Completion'];
export type News = FrameSchemas['News'];
export type Progress = FrameSchemas['Progress'];
export type Subscription = FrameSchemas['Subscription'];
